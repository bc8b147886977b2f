package zkconn

import (
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"
)

// Client is the part of a ZooKeeper client that is used here: recipes.Conn without what
// only the recipes use. That interface cannot be this one, or embed it: its methods are
// to be seen in the public documentation.
type Client interface {
	Children(path string) ([]string, *zk.Stat, error)
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Delete(path string, version int32) error
	Get(path string) ([]byte, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Sync(path string) (string, error)
	SessionID() int64
	State() zk.State
}

// A StandIn stands in for a *recipes.Client or a *zk.Conn in a test of this module, and
// keeps its order of answers and events. The order of any other wrapper is unknown.
type StandIn interface {
	Client
	// StandsFor returns what the receiver stands in for; a Client of another type says
	// that the receiver keeps no order.
	StandsFor(Test) Client
}

// Test keeps others, who cannot name it, from declaring a StandIn.
type Test struct{}

// Config is what a user of a connection knows about it. The first user's counts for all,
// and until the Conn is forgotten, but for what each user may know better: Timeout,
// ServerTick and Log. What is to last as long as one hold belongs to its ephemeral.
type Config struct {
	// Timeout returns the negotiated session timeout, 0 if it is unknown. It is not nil.
	Timeout func() time.Duration
	// Advice is what a loss says is to be done if Timeout is unknown.
	Advice string
	// ServerTick is the servers' tick, 0 if it is unknown.
	ServerTick time.Duration
	// Log receives a warning while answers are so slow that holds may be lost; may be
	// nil.
	Log *slog.Logger
	// Plain reports that the connection is a *zk.Conn: how that behaves once it was
	// closed is known.
	Plain bool
	// Foreign reports that the connection is a wrapper, whose methods are code of the
	// user's: a request at which it panics, or ends its goroutine, fails.
	Foreign bool
	// LastHandshake returns when the last handshake of that session began; nil if the
	// connection does not tell.
	LastHandshake func(session int64) (time.Time, bool)
	// InOrder: the event of a watch is in its channel before the answer to any later
	// request returns.
	InOrder bool
	// Server returns the server that the connection uses; nil if it does not tell.
	Server func() string
	// CreatedAt returns the zxid of the create of an ephemeral sequential znode, by the
	// path that was asked for, once: 0 if it is not known. It is nil if the connection
	// does not tell.
	CreatedAt func(path string) (zxid int64)
	// WhenClosed calls f when the connection's owner closes it, before the session ends,
	// unless stop was called; at once, on another goroutine, if it was closed before. It
	// is nil if the connection does not tell.
	WhenClosed func(f func()) (stop func())
}
