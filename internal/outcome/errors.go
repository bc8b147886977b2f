package outcome

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// ErrClosed says that the connection was closed by its owner: no request will ever be
// answered again.
var ErrClosed = errors.New("the connection was closed by its owner")

// ClosedError is what callers receive: it also matches zk.ErrConnectionClosed, which they
// know.
type ClosedError struct{}

func (ClosedError) Error() string { return ErrClosed.Error() }

func (ClosedError) Unwrap() []error { return []error{ErrClosed, zk.ErrConnectionClosed} }

// Why a session, or a hold in it, can no longer be relied on; ErrClosed is one more.
var (
	// ErrSessionEnded is certain: the client has another session, or none.
	ErrSessionEnded = errors.New("the ZooKeeper session has ended")
	// ErrOutOfTouch says that the leader may have ended the session, as far as is known
	// here: the time that it certainly grants is over, or for a new hold nearly. A
	// contact can still show that it has not. A connection that is lost, which Curator
	// calls SUSPENDED, is not enough.
	ErrOutOfTouch = errors.New("out of touch with ZooKeeper")
	// ErrTooShort says that no session with these servers can be relied on; see
	// lossclock.Terms.
	ErrTooShort = errors.New("the session timeout is too short to hold a lock")
)

// A ReplyTooLong is the outcome of a request whose reply was longer than the client
// accepts, and so was skipped. The server got the request, and judged it.
type ReplyTooLong struct{ Bytes int }

func (e ReplyTooLong) Error() string {
	return fmt.Sprintf("the reply has %d bytes, more than the client accepts: "+
		"WithMaxReply sets the limit", e.Bytes)
}

// IsReplyTooLong reports whether err is a ReplyTooLong.
func IsReplyTooLong(err error) bool { return errors.As(err, new(ReplyTooLong)) }

// A Broken is the outcome of a request whose call did not return: a wrapper's, which is
// code of the user's. The request may have been done, and may succeed later.
type Broken struct{ Err error }

func (b Broken) Error() string { return b.Err.Error() }
func (b Broken) Unwrap() error { return b.Err }

func isBroken(err error) bool { return errors.As(err, new(Broken)) }

// Named returns err, or what it means if the client does not know its code: package wire
// answers for a reply that it has skipped, with its length as the code.
func Named(err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), unnamed) {
		return err
	}
	bytes, parseErr := strconv.Atoi(err.Error()[len(unnamed):])
	if parseErr != nil || bytes < shortestLimit { // a code of the server's
		return err
	}
	return ReplyTooLong{bytes}
}

// unnamed begins the text of an error whose code the client does not know.
const unnamed = "unknown error: -"

// shortestLimit is what no code of a server comes near.
const shortestLimit = 4096

// Permanent returns an error that says what err does, and is Final: Retry ends with it.
func Permanent(err error) error { return permanent{err} }

type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// NotSent returns an error that says what err does, of a request that was not sent: it is
// Final, and NotDone.
func NotSent(err error) error { return permanent{unsent{err}} }

type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

func isPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}
