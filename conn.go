package recipes

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// Conn is the part of *zk.Conn that the recipes use. [Client] satisfies it too; so can a
// wrapper for tracing, a chroot or fault injection. It must be safe for concurrent use
// and of a comparable type, such as a pointer, and its requests must reach the server in
// the order in which they were made. A wrapper should be a [SessionConn], or have a
// method Unwrap() recipes.Conn that leads to one: otherwise the session timeout is
// unknown. One that changes paths must be a SessionConn itself. With any wrapper a
// contended acquire takes up to one list more: only of a *Client and of a *zk.Conn, as
// they are, is the order of answers and events known. See docs/connections.md, also for
// how a wrapper simulates an outage and a close.
type Conn interface {
	Children(path string) ([]string, *zk.Stat, error)
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Delete(path string, version int32) error
	Get(path string) ([]byte, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Sync(path string) (string, error)
	Multi(ops ...any) ([]zk.MultiResponse, error)
	GetACL(path string) ([]zk.ACL, *zk.Stat, error)
	SessionID() int64
	State() zk.State
}

// SessionConn is a Conn that reports what it knows of its session, so that Lost closes in
// time, as [Client] does (else see WithSessionTimeout). Its methods send no requests and
// are safe for concurrent use.
type SessionConn interface {
	Conn
	SessionTimeout() time.Duration // granted at the last handshake, 0 before the first
	ServerTick() time.Duration     // the servers' tickTime, 0 if unknown
	ServerPath(path string) string // path as the server sees it, below a chroot if any
	// LastHandshake returns the session that the last handshake began or resumed, and
	// when that handshake began, not later than its first byte was sent: 0 and the zero
	// time before the first. The session lasts for at least one session timeout from then
	// on, since the ensemble's leader takes part in each handshake.
	LastHandshake() (session int64, began time.Time)
	// OnClose calls f, once at most, when the connection's owner closes it, before the
	// session ends; at once, on another goroutine, if it is closed already. f is quick: a
	// Client waits for it for two seconds. stop prevents a call that has not been made.
	OnClose(f func()) (stop func())
}

// asItIs returns conn, or what it stands in for in a test.
func asItIs(conn Conn) zkconn.Client {
	if s, ok := conn.(zkconn.StandIn); ok {
		return s.StandsFor(zkconn.Test{})
	}
	return conn
}

// sessionText is a session's id as the servers' logs have it.
func sessionText(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }

// wrapped finds a T in conn or in what it wraps.
func wrapped[T any](conn Conn) (found T, ok bool) {
	for {
		if found, ok = conn.(T); ok {
			return found, true
		}
		wrapper, ok := conn.(interface{ Unwrap() Conn })
		if !ok {
			return found, false
		}
		conn = wrapper.Unwrap()
	}
}

// serverPath is path as the server sees it.
func serverPath(conn Conn, path string) string {
	if sc, ok := wrapped[SessionConn](conn); ok {
		return sc.ServerPath(path)
	}
	return path
}
