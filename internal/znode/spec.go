package znode

import (
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A Spec is what the znodes of one side of a directory have in common. It does not
// change once the first of them is created.
type Spec struct {
	Dir  string   // the path of the directory
	Kind string   // what the recipe calls its own znodes
	Data []byte   // of the znodes
	ACL  []zk.ACL // of the znodes and of the parents that are created
	Log  *slog.Logger
	// Cached: the znode may stay while nobody uses it, until another participant is
	// queued behind it. Its name says so: see MayBeCached.
	Cached bool
	// SingleAttempt: the znode leaves as soon as somebody is known to be ahead. Its name
	// says so: see IsSingleAttempt.
	SingleAttempt bool
	// Joined is called each time that a znode stands in the directory, and must not wait;
	// nil: nobody cares.
	Joined func(conn *zkconn.Conn)
	Terms
}

// mark is what the names of the znodes say of them.
func (s *Spec) mark() string {
	switch {
	case s.Cached:
		return markCached
	case s.SingleAttempt:
		return markSingleAttempt
	}
	return ""
}

// Terms say how long a hold can be relied on.
type Terms struct {
	// LossMargin is by how much earlier than necessary Lost is closed when the
	// connection has no confirmed contact, and for how long after that the znode stays;
	// see zkconn.Conn.Hold.
	LossMargin time.Duration
	// MaxHold is after what time a hold expires, with ErrExpired; 0: never.
	MaxHold time.Duration
}

// CheckTerms returns an error if the connection cannot tolerate the terms.
func (t Terms) CheckTerms(conn *zkconn.Conn) error {
	return conn.CheckMargin(t.LossMargin)
}

// Hooks are called on behalf of one znode, from before its create to behind its delete.
type Hooks interface {
	// Sending is called just before each create is sent, on the goroutine that sends it.
	Sending()
	// Created is called on the same goroutine once it is known what became of the create;
	// nil: there is no znode. On an error the Node is withdrawn, and the error ends
	// Create. The Node may end, and End and Removed be called, before Created is.
	Created(n *Node) error
	// End calls end and returns what that returns; false: the Node had ended before. end
	// closes Lost, if the Node was held. Whatever else is to know of the end learns of it
	// here, under one mutex that is held around end: so one that hears of a loss from
	// Lost finds it known, and nobody goes on because of the end before the holder is
	// notified. It is called with no mutex of a Node held, before anybody who waits for
	// the Node is woken. The caller may hold a mutex of its own.
	End(cause error, end func() bool) bool
	// Removed is called once, when nothing is left to be done: gone if an answer or an
	// event has said that the znode is; else its session is over, which the znode may
	// outlive. That can take as long as the session, if the delete is rejected. End may
	// not have returned by then.
	Removed(gone bool)
	// Data is called with each change of the znode's data that the watch on it shows.
	Data(data []byte)
}

// NoHooks are Hooks that do nothing. Who needs a few of them embeds it.
type NoHooks struct{}

// Sending implements Hooks.
func (NoHooks) Sending() {}

// Created implements Hooks.
func (NoHooks) Created(*Node) error { return nil }

// End implements Hooks.
func (NoHooks) End(_ error, end func() bool) bool { return end() }

// Removed implements Hooks.
func (NoHooks) Removed(bool) {}

// Data implements Hooks.
func (NoHooks) Data([]byte) {}

// A Tenant relies on a held Node that others may rely on, too.
type Tenant interface {
	// Lost is called before the Node's own Lost is done. The mutex of the Node is held:
	// it calls no method of the Node.
	Lost(cause error)
}
