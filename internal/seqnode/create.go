package seqnode

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
)

// flagContainer is zk.FlagContainer of v1.0.4; v1.0.3 wants the same number for it under another name.
const flagContainer = 4

// errNotCreated says that a create of unknown outcome has left no znode.
var errNotCreated = errors.New("the create did not reach the server")

// join creates the znode, in the directory that it makes where it is missing.
func (q *Queue) join(ctx context.Context, s *session.Session, e *Entry) (*Node, error) {
	id := newID()
	var backoff session.Backoff
	for {
		if err := s.Ready(ctx); err != nil {
			return nil, err
		}
		n, err := q.createAndList(ctx, s, id, e)
		switch {
		case err == nil && nearLimit(n.name.Seq):
			n.giveUp(ctx)
			return nil, fmt.Errorf("the sequence counter of %s is at %d, near its end at 2147483647, where ZooKeeper hands out "+
				"equal numbers (ZOOKEEPER-4706): delete %s while nobody uses it, or lock another path", q.Dir, n.name.Seq, q.Dir)
		case err == nil:
			return n, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, zk.ErrNoNode):
			err = q.makeDir(ctx, s, q.Dir)
		}
		if session.Final(err) {
			return nil, err
		}
		if err := s.Pause(ctx, backoff.Next()); err != nil {
			return nil, err
		}
	}
}

// createAndList sends the list right behind the create, without waiting for its answer: a free lock takes one round trip. The list
// proves by showing the znode that it came second.
func (q *Queue) createAndList(ctx context.Context, s *session.Session, id string, e *Entry) (*Node, error) {
	select {
	case s.Creating <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.Closed():
		return nil, s.Pause(ctx, 0)
	}
	reconnected := s.Reconnected()
	var first *session.Pending[listing] // set before created is done
	created := session.Start(s, func() (*Node, error) {
		defer func() { <-s.Creating }()
		return q.create(s, id, e.Changed, func() {
			first = session.Start(s, func() (listing, error) { return q.list(s) })
		})
	})
	n, err := created.Wait(ctx)
	if n == nil && (ctx.Err() != nil || errors.Is(err, session.ErrClosed)) {
		created.Then(func(n *Node, _ error) {
			if n != nil {
				n.end(errLeft)
			}
		})
	}
	if err != nil {
		return nil, err
	}
	n.first, n.reconnected = first, reconnected
	return n, nil
}

// create makes the znode and finds out what became of it: the Node, or an error that says that there is none.
// It calls behind just before the request goes to the client.
func (q *Queue) create(s *session.Session, id string, changed func([]byte), behind func()) (*Node, error) {
	zkSession := s.Conn.SessionID()
	var path string
	err := s.Observe(func() (err error) {
		behind() // its goroutine needs longer to start than this one to put the create in the client's queue
		path, err = s.Conn.Create(join(q.Dir, protectedPrefix+id+"-"+q.Kind), q.Data, zk.FlagEphemeral|zk.FlagSequence, q.ACL)
		return err
	})
	if session.NotDone(err) {
		return nil, err
	}
	// The client runs a call that it had queued in the next session, too. Session ids do not come back: the same one before
	// and after is the znode's.
	if err == nil && zkSession != 0 && s.Conn.SessionID() == zkSession {
		return q.adopt(s, path, id, zkSession, changed)
	}
	return q.find(s, id, changed)
}

func (q *Queue) adopt(s *session.Session, path, id string, zkSession int64, changed func([]byte)) (*Node, error) {
	name, ok := Parse(path[strings.LastIndexByte(path, '/')+1:], []string{q.Kind})
	if !ok {
		return nil, fmt.Errorf("%w: created %s, which has no sequence number", zk.ErrAPIError, path)
	}
	n := q.newNode(s, path, name, id, zkSession)
	n.changed = changed
	return n, nil
}

// find looks for the znode of a create of unknown outcome, until it knows. A znode of another session is not taken over: its
// server is about to remove it (CURATOR-498, CURATOR-604).
func (q *Queue) find(s *session.Session, id string, changed func([]byte)) (*Node, error) {
	var backoff session.Backoff
	for {
		if err := s.Ready(context.Background()); err != nil {
			return nil, err
		}
		n, err := q.findOnce(s, id, changed)
		switch {
		case n != nil:
			return n, nil
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return nil, errNotCreated
		case session.Final(err):
			return nil, err
		}
		if err := s.Pause(context.Background(), backoff.Next()); err != nil {
			return nil, err
		}
	}
}

func (q *Queue) findOnce(s *session.Session, id string, changed func([]byte)) (*Node, error) {
	zkSession := s.Conn.SessionID()
	if err := q.sync(s); err != nil { // the server we came back to may lag behind the create
		return nil, err
	}
	l, err := q.list(s)
	if err != nil {
		return nil, err
	}
	var own string
	var czxid int64
	var refusal error
	for _, child := range l.children {
		if !hasID(child, id) {
			continue
		}
		path := join(q.Dir, child)
		var stat *zk.Stat
		err := s.Observe(func() (err error) {
			_, stat, err = s.Conn.Get(path)
			return err
		})
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil && !session.Final(err):
			return nil, err // nothing is discarded that the next search may take over
		case err == nil && own == "" && stat.EphemeralOwner == zkSession && s.Conn.SessionID() == zkSession:
			own, czxid = path, stat.Czxid
		default:
			q.discard(s, path, zkSession)
			refusal = err
		}
	}
	if own == "" {
		return nil, refusal
	}
	n, err := q.adopt(s, own, id, zkSession, changed)
	if err == nil {
		n.token = czxid
	}
	return n, err
}

// discard deletes a znode of ours that is none we hold.
func (q *Queue) discard(s *session.Session, path string, zkSession int64) {
	session.Start(s, func() (struct{}, error) { return struct{}{}, q.remove(s, path, zkSession) })
}

// discardStrays deletes what else turned up with n's id.
func (n *Node) discardStrays(children []string) {
	for _, child := range children {
		if child != n.name.Text && hasID(child, n.id) {
			n.q.discard(n.s, join(n.q.Dir, child), n.session)
		}
	}
}

// makeDir creates dir and its parents as containers, which the server deletes when they are empty, or as plain znodes where the
// server has no containers. It goes from the bottom up: it may have no permission above what exists.
func (q *Queue) makeDir(ctx context.Context, s *session.Session, dir string) error {
	_, err := session.Call(ctx, s, func() (string, error) {
		if s.Containers() {
			return s.Conn.CreateContainer(dir, []byte{}, flagContainer, q.ACL)
		}
		return s.Conn.Create(dir, []byte{}, zk.FlagPersistent, q.ACL)
	})
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case session.Unimplemented(err):
		s.NoContainers()
		return errNotCreated // the server has closed the connection; join tries again
	case errors.Is(err, zk.ErrNoNode):
		parent := dir[:strings.LastIndexByte(dir, '/')]
		if parent == "" {
			return fmt.Errorf("create %s: the root is missing: %w", dir, err)
		}
		if err := q.makeDir(ctx, s, parent); err != nil {
			return err
		}
		return q.makeDir(ctx, s, dir)
	case err != nil:
		return fmt.Errorf("create %s: %w", dir, err)
	}
	return nil
}
