package recipes

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-zookeeper/zk"
)

// Conn is the part of a ZooKeeper client that the recipes use. *zk.Conn satisfies it as
// it is; a wrapper (chroot, tracing, fault injection) can stand in.
//
// A Conn is the key of the library's per-connection state, so its dynamic type must be
// comparable; a pointer is. It must be safe for concurrent use, and requests must reach
// the server in the order in which they were made.
//
// *zk.Conn and [Client] also keep events in order: the event of a watch is in its channel
// before the answer to any later request returns. The library relies on that only for
// these two types themselves and for an [OrderedConn]. With any other wrapper, which may
// deliver events late, it grants a lock only by a list that was requested afterwards. A
// contended acquire then takes up to one list more. Late events also delay what only an
// event can report: a waiter wakes later, a cached entry (WithCaching) is given up later,
// and a holder whose znode somebody deleted is notified later.
//
// What a Conn may tell beyond this interface is a [SessionConn]'s. A wrapper that has a
// method
//
//	Unwrap() recipes.Conn
//
// is looked through for it, and for the method Multi that [Hold.Multi] takes. So a
// wrapper of a [Client] needs that method, whether it embeds the Conn or keeps it in a
// field; with no more than Conn's methods it is a connection whose session timeout is
// unknown. A wrapper that changes paths must be a SessionConn itself, and have a Multi of
// its own where one is to be used: those of the Conn inside know nothing of the change.
//
// A wrapper plays an outage as *zk.Conn has one: calls fail with zk.ErrConnectionClosed
// or zk.ErrNoServer, or wait, and SessionID stays. State says zk.StateConnecting, or what
// it said before. All goes on when the outage is over. Only *zk.Conn itself is known to
// be closed by how its calls fail. A wrapper says so by zk.ErrClosing, which *zk.Conn
// gives to watches and to calls under way when it is closed; or by nothing but
// zk.ErrConnectionClosed from every call and zk.StateDisconnected from State for a
// session timeout, ten seconds at least (40 s where the session timeout is not known).
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

// SessionConn is a Conn that tells what it knows of its session, so that the loss of a
// lock can be told in time. A [Client] is one. For a Conn that neither is nor wraps one,
// see [WithSessionTimeout]. Its methods ask nothing of ZooKeeper, and are safe for
// concurrent use.
type SessionConn interface {
	Conn
	// SessionTimeout returns the session timeout as negotiated with the server at the
	// last handshake, 0 before the first.
	SessionTimeout() time.Duration
	// ServerTick returns the servers' tickTime, 0 where it was not told; see
	// WithServerTick.
	ServerTick() time.Duration
	// LastHandshake returns the session that the last handshake began or resumed, and
	// when that handshake began, not later than its first byte was sent: 0 and the zero
	// time before the first. The leader of the ensemble takes part in each handshake: the
	// session lasts for at least one session timeout from then on.
	LastHandshake() (session int64, began time.Time)
	// OnClose calls f when the connection's owner closes it, before the session ends:
	// what the session guards must not be relied on when others get it. f is quick, and
	// called once at most; on another goroutine, at once, where the connection is closed
	// already. stop prevents the call, where it has not been made yet.
	OnClose(f func()) (stop func())
	// ServerPath returns path as the server sees it, without and with a chroot.
	ServerPath(path string) string
}

// OrderedConn is a wrapper that keeps the order of answers and events. Implement it on a
// wrapper that returns the event channels of its Conn as they are, and answers only after
// its Conn has answered. Then contended locks cost no more than without the wrapper. A
// wrapper that passes events on by a goroutine, for example to change their paths, cannot
// keep the order.
type OrderedConn interface {
	Conn
	// Unwrap returns the wrapped Conn. It must keep the order itself: a *zk.Conn, a
	// Client or an OrderedConn.
	Unwrap() Conn
	// KeepsOrder returns the receiver. The promise is made for the methods of one type: a
	// type that embeds the wrapper inherits this method, but not the promise, since
	// KeepsOrder then returns something other than the embedding value.
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
