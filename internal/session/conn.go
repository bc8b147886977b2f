package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

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
	createOp = op{name: "create", counts: judged, perm: "CREATE", onParent: true}
	deleteOp = op{name: "delete", counts: judged, perm: "DELETE", onParent: true}
	setOp    = op{name: "set", counts: judged, perm: "WRITE"}
	// The leader has answered a sync if it succeeds; no error is known to be his.
	syncOp = op{name: "sync", counts: succeeded, perm: "READ"}
)

// A request is one call of the Conn. What every one of them must do is done here, so that
// no caller can forget it: the loss clock runs on writes and syncs, what callers are told
// of silence on all answers, and a refusal names what was asked for.
type request struct {
	s       *Session
	op      *op
	path    string
	session int64     // of an op that may count: the one that it was made in
	sent    time.Time // likewise: not later than it was sent
}

// begin is called just before the Conn is.
func (s *Session) begin(op *op, path string) request {
	r := request{s: s, op: op, path: path}
	if op.counts != nil {
		r.session, r.sent = s.conn.SessionID(), time.Now()
	}
	s.noteAsked()
	return r
}

// end is called with what the Conn returned, and returns what the caller is told.
func (r request) end(err error) error {
	s := r.s
	if Answered(err) {
		s.noteHeard()
	}
	s.noteOutcome(err)
	if errors.Is(err, zk.ErrClosing) {
		s.ConnClosed()
	}
	if r.op.counts != nil && r.op.counts(err) && r.session != 0 {
		s.noteContact(r.session, r.sent)
	}
	return r.refusal(err)
}

// refusal names the request that err refuses, and the permission where that is what is
// missing. A lost connection is left as it is: it says nothing about the request.
func (r request) refusal(err error) error {
	if !Final(err) {
		return err
	}
	// A Conn that says more than that knows better.
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

// SessionID is the Conn's.
func (s *Session) SessionID() int64 { return s.conn.SessionID() }

// Children is the Conn's.
func (s *Session) Children(path string) ([]string, *zk.Stat, error) {
	r := s.begin(&listOp, path)
	children, stat, err := s.conn.Children(path)
	return children, stat, r.end(err)
}

func (s *Session) childrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	r := s.begin(&listOp, path)
	children, stat, events, err := s.conn.ChildrenW(path)
	return children, stat, events, r.end(err)
}

// Get is the Conn's.
func (s *Session) Get(path string) ([]byte, *zk.Stat, error) {
	r := s.begin(&readOp, path)
	data, stat, err := s.conn.Get(path)
	return data, stat, r.end(err)
}

// GetW is the Conn's. Its watch is the caller's own; see Watch for one that is shared.
func (s *Session) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	r := s.begin(&readOp, path)
	data, stat, events, err := s.conn.GetW(path)
	return data, stat, events, r.end(err)
}

// Create is the Conn's.
func (s *Session) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	r := s.begin(&createOp, path)
	created, err := s.conn.Create(path, data, flags, acl)
	return created, r.end(err)
}

// CreateContainer creates an empty znode that the server reaps when it has lost its last
// child, or a persistent one where the server is known to have no containers. It is known
// by its first answer, which costs the connection: see Unimplemented.
func (s *Session) CreateContainer(path string, acl []zk.ACL) error {
	if s.hasNoContainers() {
		_, err := s.Create(path, []byte{}, zk.FlagPersistent, acl)
		return err
	}
	r := s.begin(&createOp, path)
	_, err := s.conn.CreateContainer(path, []byte{}, flagContainer, acl)
	if Unimplemented(err) {
		s.noteNoContainers()
	}
	return r.end(err)
}

// flagContainer is zk.FlagContainer of v1.0.4; v1.0.3 wants the same number for it under
// another name.
const flagContainer = 4

func (s *Session) hasNoContainers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noContainers
}

func (s *Session) noteNoContainers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noContainers = true
}

// Delete is the Conn's.
func (s *Session) Delete(path string, version int32) error {
	r := s.begin(&deleteOp, path)
	return r.end(s.conn.Delete(path, version))
}

// Set is the Conn's.
func (s *Session) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	r := s.begin(&setOp, path)
	stat, err := s.conn.Set(path, data, version)
	return stat, r.end(err)
}

// Sync is the Conn's.
func (s *Session) Sync(path string) error {
	r := s.begin(&syncOp, path)
	_, err := s.conn.Sync(path)
	return r.end(err)
}
