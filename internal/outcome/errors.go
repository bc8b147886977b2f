package outcome

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// ErrClosed says that the connection was closed by its owner: nothing will ever be heard
// of it again.
var ErrClosed = errors.New("the connection was closed by its owner")

// ClosedError is what callers are told: it matches zk.ErrConnectionClosed too, which they
// know.
type ClosedError struct{}

func (ClosedError) Error() string { return ErrClosed.Error() }

func (ClosedError) Unwrap() []error { return []error{ErrClosed, zk.ErrConnectionClosed} }

// Why a session, or a hold in it, can no longer be relied on; ErrClosed is one more.
var (
	// ErrSessionEnded is known for sure: the client has another session, or none.
	ErrSessionEnded = errors.New("the ZooKeeper session has ended")
	// ErrSuspended says that the leader may end the session, or has ended it, for all
	// that is known here. A contact can still show that it has not.
	ErrSuspended = errors.New("out of touch with ZooKeeper")
	// ErrTooShort says that no session with these servers can be relied on; see
	// Config.ServerTick.
	ErrTooShort = errors.New("the session timeout is too short to hold a lock")
)

// Permanent returns an error that says what err does, and is Final: Retry ends with it.
func Permanent(err error) error { return permanent{err} }

type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

func isPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}
