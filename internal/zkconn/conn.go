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
	size    int       // all of it, in bytes
	data    int       // that much of it is the data of a znode
	session int64     // of an op that may count: the one that it was sent in; 0: none
	sent    time.Time // not later than it was sent
}

// make makes a request by call. rest is how long it is without its head and the path.
func (rs *requests) make(
	op *op, path string, rest int, data []byte, call func() error,
) error {
	r := request{
		s: rs.s, op: op, path: path, size: headSize + len(path) + rest + len(data),
		data: len(data),
	}
	if err := rs.s.checkSize(r); err != nil {
		return r.refusal(err)
	}
	r.begin()
	return r.end(call())
}

// checkSize returns an error if r would break the connection.
func (s *Conn) checkSize(r request) error {
	if r.size < someLength {
		return nil
	}
	if r.size > MaxRequest {
		return outcome.NotSent(fmt.Errorf("the request has %d bytes, %d of them data: "+
			"ZooKeeper accepts at most %d (jute.maxbuffer)", r.size, r.data, MaxRequest))
	}
	s.mu.Lock()
	cut, limit := s.cuts.times[r.cutKey()] > 0, s.cuts.limit
	if !time.Now().Before(s.cuts.until) {
		limit = 0
	}
	s.mu.Unlock()
	switch {
	case limit > 0 && r.size >= limit:
		return outcome.NotSent(fmt.Errorf("the request has %d bytes, %d bytes of data "+
			"among them, and %d tries of one with %d bytes broke the connection, while "+
			"other requests got through; is the servers' jute.maxbuffer lower than "+
			"that? %w", r.size, r.data, cutsAtMost, limit, zk.ErrConnectionClosed))
	case cut:
		return s.Sync("/")
	}
	return nil
}

func (r *request) cutKey() cutKey { return cutKey{r.op.name, r.path, r.size} }

// The sizes of what a request has besides texts: its head, with the length of the path;
// a number; a flag.
const (
	headSize   = 12
	numberSize = 4
	flagSize   = 1
)

// begin is called just before the Client is. It takes no longer than it must, unless
// requests are held back: a list may be on its way behind a create, and has to come
// second.
func (r *request) begin() {
	r.s.awaitQuiet()
	s, now := r.s, time.Now()
	r.sent = now
	if r.op.counts != nil {
		r.session = s.conn.SessionID()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.availability.ask(now)
	s.cuts.begin(r.cutKey())
	if r.op.counts != nil {
		s.ledger.Asked()
	}
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
	s.cuts.note(r.cutKey(), r.sent, err)
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
	return fmt.Errorf(
		"%s %s: %w", r.op.name, zkpath.Brief(r.path), outcome.WithMeaning(err))
}

func succeeded(err error) bool { return err == nil }

// SessionID is the Client's.
func (rs *requests) SessionID() int64 { return rs.conn.SessionID() }

// Children is the Client's.
func (rs *requests) Children(path string) (names []string, stat *zk.Stat, err error) {
	err = rs.make(&listOp, path, flagSize, nil, func() (err error) {
		names, stat, err = rs.conn.Children(path)
		return err
	})
	return names, stat, err
}

// ChildrenW is the Client's. Its watch is the caller's own, as GetW's is.
func (rs *requests) ChildrenW(path string) (
	names []string, stat *zk.Stat, events <-chan zk.Event, err error,
) {
	err = rs.make(&listOp, path, flagSize, nil, func() (err error) {
		names, stat, events, err = rs.conn.ChildrenW(path)
		return err
	})
	return names, stat, events, err
}

// Get is the Client's.
func (rs *requests) Get(path string) (data []byte, stat *zk.Stat, err error) {
	err = rs.make(&readOp, path, flagSize, nil, func() (err error) {
		data, stat, err = rs.conn.Get(path)
		return err
	})
	return data, stat, err
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
func (rs *requests) GetW(path string) (
	data []byte, stat *zk.Stat, events <-chan zk.Event, err error,
) {
	err = rs.make(&readOp, path, flagSize, nil, func() (err error) {
		data, stat, events, err = rs.conn.GetW(path)
		return err
	})
	return data, stat, events, err
}

// Create is the Client's.
func (rs *requests) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (created string, err error) {
	err = rs.make(&createOp, path, restOfCreate(acl), data, func() (err error) {
		created, err = rs.conn.Create(path, data, flags, acl)
		return err
	})
	return created, err
}

// restOfCreate is the size of what a create has behind its path, without the data: the
// length of that, the ACLs, each with two texts, and the flags.
func restOfCreate(acl []zk.ACL) int {
	size := 3 * numberSize
	for _, a := range acl {
		size += 3*numberSize + len(a.Scheme) + len(a.ID)
	}
	return size
}

// CreateContainer creates an empty znode that the server reaps when it has lost its last
// child, or a persistent one where the server is known to have no containers. It is known
// by its first answer, which costs the connection: see Unimplemented.
func (rs *requests) CreateContainer(path string, acl []zk.ACL) error {
	if rs.s.hasNoContainers() {
		_, err := rs.Create(path, []byte{}, zk.FlagPersistent, acl)
		return err
	}
	return rs.make(&createOp, path, restOfCreate(acl), nil, func() error {
		_, err := rs.conn.CreateContainer(path, []byte{}, flagContainer, acl)
		if outcome.Unimplemented(err) {
			rs.s.noteNoContainers()
		}
		return err
	})
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
	return rs.make(&deleteOp, path, numberSize, nil, func() error {
		return rs.conn.Delete(path, version)
	})
}

// Set is the Client's.
func (rs *requests) Set(
	path string, data []byte, version int32,
) (stat *zk.Stat, err error) {
	err = rs.make(&setOp, path, 2*numberSize, data, func() (err error) {
		stat, err = rs.conn.Set(path, data, version)
		return err
	})
	return stat, err
}

// Sync is the Client's.
func (rs *requests) Sync(path string) error {
	return rs.make(&syncOp, path, 0, nil, func() error {
		_, err := rs.conn.Sync(path)
		return err
	})
}
