package recipes

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"
)

// Conn is the part of *zk.Conn that the recipes use. [Client] satisfies it too; so can a
// wrapper for tracing, a chroot or fault injection. It must be safe for concurrent use
// and of a comparable type, such as a pointer, and its requests must reach the server in
// the order in which they were made. A wrapper should have a method Unwrap()
// recipes.Conn, which leads to a [SessionConn] and to Multi for [Hold.Multi]; without it,
// the session timeout is unknown. A wrapper that changes paths must be a SessionConn
// itself. See docs/connections.md, also for how a wrapper simulates an outage and a
// close.
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

// OrderedConn is a wrapper that keeps the order of answers and events: it returns the
// event channels of its Conn as they are, and answers only after its Conn has answered.
// With any other wrapper a contended acquire takes up to one list more. Passing events on
// through a goroutine breaks the order.
type OrderedConn interface {
	Conn
	Unwrap() Conn // the wrapped Conn: a *zk.Conn, a Client or an OrderedConn
	// KeepsOrder returns the receiver. A type that embeds the wrapper inherits it, but
	// not the promise: KeepsOrder returns the wrapper, not the value that embeds it.
	KeepsOrder() Conn
}

// keepsOrder reports whether conn keeps the order of answers and events.
func keepsOrder(conn Conn) bool {
	switch c := conn.(type) {
	case *zk.Conn, *Client:
		return true
	case OrderedConn:
		if !reflect.ValueOf(conn).Comparable() {
			return false // it cannot be told from what it returns
		}
		return c.KeepsOrder() == conn && keepsOrder(c.Unwrap())
	}
	return false
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
