package zkconn

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// An op is a kind of request.
type op struct {
	name string
	// counts tells by its outcome whether the leader of the ensemble had a part in it;
	// nil where he never has.
	counts func(error) bool
	// perm is the permission that it takes, as ZooKeeper calls it, on the znode itself or
	// on its parent.
	perm     string
	onParent bool
}

var (
	listOp   = op{name: "list", perm: "READ"}
	readOp   = op{name: "read", perm: "READ"}
	createOp = op{name: "create", counts: outcome.Judged, perm: "CREATE", onParent: true}
	deleteOp = op{name: "delete", counts: outcome.Judged, perm: "DELETE", onParent: true}
	setOp    = op{name: "set", counts: outcome.Judged, perm: "WRITE"}
	// The leader has answered a sync if it succeeds; no error is known to be his.
	syncOp = op{name: "sync", counts: succeeded, perm: "READ"}
)

// A request is one call of the Client, from just before it is sent to its answer.
type request struct {
	s       *Conn
	op      *op
	path    string
	session int64     // of an op that may count: the one that it was sent in; 0: none
	sent    time.Time // not later than it was sent
}

// begin is called just before the Client is. It takes no longer than it must, unless
// requests are held back: a list may be on its way behind a create, and has to come
// second.
func (rs *requests) begin(op *op, path string) request {
	rs.s.awaitQuiet()
	s, now := rs.s, time.Now()
	r := request{s: s, op: op, path: path, sent: now}
	if op.counts != nil {
		r.session = rs.conn.SessionID()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.availability.ask(now)
	if op.counts != nil {
		s.ledger.Asked()
	}
	return r
}

// end is called with what the Client returned, and returns what the caller is told.
func (r request) end(err error) error {
	r.s.learn(r, err)
	if errors.Is(err, zk.ErrClosing) {
		r.s.ConnClosed()
	}
	return r.refusal(err)
}

// learn takes note of what a request's outcome tells about its connection.
func (s *Conn) learn(r request, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if outcome.Answered(err) {
		s.availability.hear(now)
		s.availability.measure(now.Sub(r.sent))
	}
	s.suspicion.note(err, now)
	if outcome.ConnectionLost(err) { // it may be back before the next tick
		s.reconnects.lost = true
	}
	// An answer to another session than it was sent in says nothing of either; and one
	// that began meanwhile may have its own contacts already.
	if r.session != 0 && r.op.counts(err) && s.conn.SessionID() == r.session {
		s.ledger.Heard(r.session, r.sent)
	}
}

// refusal names the request that err refuses, and the permission where that is what is
// missing. A lost connection is left as it is: it says nothing about the request.
func (r request) refusal(err error) error {
	if !outcome.Final(err) {
		return err
	}
	// A Client that says more than that knows better.
	if errors.Is(err, zk.ErrNoAuth) && errors.Unwrap(err) == nil {
		on := r.path
		if r.op.onParent {
			on = zkpath.Parent(r.path)
		}
		return fmt.Errorf("%s %s: %w (the session lacks %s on %s)",
			r.op.name, r.path, err, r.op.perm, on)
	}
	return fmt.Errorf("%s %s: %w", r.op.name, r.path, err)
}

func succeeded(err error) bool { return err == nil }

// SessionID is the Client's.
func (rs *requests) SessionID() int64 { return rs.conn.SessionID() }

// Children is the Client's.
func (rs *requests) Children(path string) ([]string, *zk.Stat, error) {
	r := rs.begin(&listOp, path)
	children, stat, err := rs.conn.Children(path)
	return children, stat, r.end(err)
}

// ChildrenW is the Client's. Its watch is the caller's own, as GetW's is.
func (rs *requests) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	r := rs.begin(&listOp, path)
	children, stat, events, err := rs.conn.ChildrenW(path)
	return children, stat, events, r.end(err)
}

// Get is the Client's.
func (rs *requests) Get(path string) ([]byte, *zk.Stat, error) {
	r := rs.begin(&readOp, path)
	data, stat, err := rs.conn.Get(path)
	return data, stat, r.end(err)
}

// Stat returns the stat of a znode without children, also if its data is too long to be
// read: whoever does not need the data of others does not depend on it.
func (rs *requests) Stat(path string) (*zk.Stat, error) {
	_, stat, err := rs.Get(path)
	if outcome.IsReplyTooLong(err) {
		_, stat, err = rs.Children(path)
	}
	return stat, err
}

// GetW is the Client's. Its watch is the caller's own; see Watch for one that is shared.
func (rs *requests) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	r := rs.begin(&readOp, path)
	data, stat, events, err := rs.conn.GetW(path)
	return data, stat, events, r.end(err)
}

// Create is the Client's.
func (rs *requests) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	r := rs.begin(&createOp, path)
	created, err := rs.conn.Create(path, data, flags, acl)
	return created, r.end(err)
}

// CreateContainer creates an empty znode that the server reaps when it has lost its last
// child, or a persistent one where the server is known to have no containers. It is known
// by its first answer, which costs the connection: see Unimplemented.
func (rs *requests) CreateContainer(path string, acl []zk.ACL) error {
	if rs.s.hasNoContainers() {
		_, err := rs.Create(path, []byte{}, zk.FlagPersistent, acl)
		return err
	}
	r := rs.begin(&createOp, path)
	_, err := rs.conn.CreateContainer(path, []byte{}, flagContainer, acl)
	if outcome.Unimplemented(err) {
		rs.s.noteNoContainers()
	}
	return r.end(err)
}

// flagContainer is zk.FlagContainer of v1.0.4; v1.0.3 wants the same number for it under
// another name.
const flagContainer = 4

func (s *Conn) hasNoContainers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noContainers
}

func (s *Conn) noteNoContainers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noContainers = true
}

// Delete is the Client's.
func (rs *requests) Delete(path string, version int32) error {
	r := rs.begin(&deleteOp, path)
	return r.end(rs.conn.Delete(path, version))
}

// Set is the Client's.
func (rs *requests) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	r := rs.begin(&setOp, path)
	stat, err := rs.conn.Set(path, data, version)
	return stat, r.end(err)
}

// Sync is the Client's.
func (rs *requests) Sync(path string) error {
	r := rs.begin(&syncOp, path)
	_, err := rs.conn.Sync(path)
	return r.end(err)
}
