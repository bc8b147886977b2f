package znode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A Claim is for one znode with a given name: it creates Nodes, one after the other, each
// once the former's removal has ended. No id is in that name, so a znode that stands
// under it may be another's. It is a Claim's own if an answer has told its czxid; until
// then, if it lives in the session of a create that was sent, with that create's data. It
// is used by one goroutine at a time, and by the creates that it has begun.
//
// A delete, a check and a set can name no more than the version of the data. So an own
// znode is read, behind a sync, before it is deleted by its version: only one that takes
// its place within that round trip, with the same version, is taken for it.
type Claim struct {
	conn *zkconn.Conn
	path string

	sent     []sent                // whose znode may stand under the name
	creating *calls.Pending[*Node] // the last create; nil: there was none

	// The last Node, which has the znode; nil while a create is under way, which can make
	// the znode of a former Node the next one's. The delete of such a Node can have been
	// rejected, and go on.
	last    atomic.Pointer[Node]
	differs bool // see Differs
}

// A sent is one create that was sent, in one session.
type sent struct {
	session int64
	data    []byte
	node    *Node // what it created; nil: that is not known
}

// A TakenError says that another's znode stands under the name. It is permanent: whoever
// waits for its end waits for Events.
type TakenError struct {
	Path    string
	Session int64
	Data    []byte
	Events  <-chan zk.Event // ends with its next change
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s is another's, of session %#x, with data %q: %v",
		e.Path, uint64(e.Session), e.Data, zk.ErrNodeExists)
}

// Unwrap returns what it matches.
func (e *TakenError) Unwrap() error { return zk.ErrNodeExists }

// errReplaced says that a former znode of ours was in the way, and has gone.
var errReplaced = errors.New("a znode of a former session was in the way")

// errDataChanged says that the data was changed between a read and what it was read for.
var errDataChanged = errors.New("the znode's data was changed meanwhile")

// NewClaim returns the Claim for the znode at path. It sends nothing.
func NewClaim(conn *zkconn.Conn, path string) *Claim {
	return &Claim{conn: conn, path: path}
}

// Create creates the znode, which is Spec.Kind in Spec.Dir. A znode of a former session
// of the Claim is deleted and replaced. Another's is a [TakenError]; one that is not
// ephemeral is a permanent error. ErrNoDir, which is permanent, too, says that somebody
// deletes the directory each time that it is made: try again later.
func (c *Claim) Create(ctx context.Context, spec *Spec, hooks Hooks) (*Node, error) {
	dir := Dir{conn: c.conn, path: spec.Dir, acl: spec.ACL}
	one := &creation{conn: c.conn, spec: spec, hooks: hooks, claim: c, dir: dir}
	return one.run(ctx)
}

// Differs tells of the Node that Create has returned whether the znode may have other
// data than the Spec's: that of a former create, or what was set since.
func (c *Claim) Differs() bool { return c.differs }

// create is creation.create of a Claim's.
func (c *Claim) create(by *creation) (*Node, error) {
	session := c.conn.SessionID()
	by.hooks.Sending()
	by.sent++
	before, last := c.sent, c.last.Swap(nil)
	// Noted before it is sent: whatever becomes of the answer, the znode may be there.
	c.mayStandIn(session, by.spec.Data)
	_, err := c.conn.Create(c.path, by.spec.Data, zk.FlagEphemeral, by.spec.ACL)
	// The client runs a call that it had queued in the next session, too.
	now := c.conn.SessionID()
	switch {
	case err == nil && session != 0 && session == now:
		return c.own(by, session, 0), nil
	case outcome.NotDone(err): // nothing of this create can be there
		c.sent = before
	case now != session:
		c.mayStandIn(now, by.spec.Data)
	}
	if outcome.NotDone(err) && !errors.Is(err, zk.ErrNodeExists) {
		c.last.Store(last)
		return nil, err
	}
	var n *Node
	unknown := !outcome.NotDone(err)
	err = c.conn.Retry(context.Background(), func() (err error) {
		n, err = c.find(by, unknown)
		return err
	})
	switch {
	case errors.Is(err, errReplaced):
		return nil, errReplaced // which is not permanent: create it now
	case errors.Is(err, zk.ErrNoNode):
		return nil, errNotCreated
	}
	return n, err
}

// mayStandIn takes note that a create may be done in a session.
func (c *Claim) mayStandIn(session int64, data []byte) {
	if session != 0 {
		c.sent = append(c.sent[:len(c.sent):len(c.sent)], sent{session, data, nil})
	}
}

// own makes the znode under the name a Node. All that was there before has gone.
func (c *Claim) own(by *creation, session, czxid int64) *Node {
	n := by.newNode(c.path, session, czxid)
	c.last.Store(n)
	c.differs = false
	c.sent = []sent{{session, by.spec.Data, n}}
	return n
}

// find looks at what stands under the name. ErrNoNode: nothing does.
func (c *Claim) find(by *creation, lagging bool) (*Node, error) {
	session := c.conn.SessionID()
	if lagging { // the server we came back to may lag behind the create
		if err := c.conn.Sync(c.path); err != nil {
			return nil, err
		}
	}
	data, stat, events, err := c.conn.WatchData(context.Background(), c.path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		c.sent = nil
		return nil, err
	case err != nil:
		return nil, err
	case zkconn.IsOwnerless(stat):
		return nil, outcome.Permanent(fmt.Errorf(
			"%s is not ephemeral, so it never ends; delete it, or choose another "+
				"path: %w",
			c.path, zk.ErrNodeExists))
	case !c.isOwn(stat, data):
		c.sent = nil
		return nil, &TakenError{c.path, stat.EphemeralOwner, data, events}
	case stat.EphemeralOwner == session && c.conn.SessionID() == session:
		n := c.own(by, session, stat.Czxid)
		n.version.Store(stat.Version)
		// A read leaves out data that is too long.
		c.differs = stat.Version != 0 || int(stat.DataLength) != len(by.spec.Data) ||
			!bytes.Equal(data, by.spec.Data)
		return n, nil
	}
	err = c.conn.Delete(c.path, stat.Version)
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrBadVersion) {
		return nil, err
	}
	return nil, outcome.Permanent(errReplaced)
}

// isOwn tells whether a znode that was read is one of the Claim's.
func (c *Claim) isOwn(stat *zk.Stat, data []byte) bool {
	for _, s := range c.sent {
		switch {
		case s.session != stat.EphemeralOwner:
		case s.node != nil && s.node.Token() != 0:
			if s.node.Token() == stat.Czxid {
				return true
			}
		case stat.Version == 0 && bytes.Equal(s.data, data):
			return true
		}
	}
	return false
}

// delete deletes the znode under the name if it is the one that was meant; ErrNoNode: it
// has gone.
func (c *Claim) delete(isMeant func(stat *zk.Stat, data []byte) bool) error {
	if err := c.conn.Sync(c.path); err != nil {
		return err
	}
	data, stat, err := c.conn.Read(c.path)
	switch {
	case err != nil:
		return err
	case !isMeant(stat, data):
		return zk.ErrNoNode
	}
	err = c.conn.Delete(c.path, stat.Version)
	if errors.Is(err, zk.ErrBadVersion) {
		return errDataChanged
	}
	return err
}

// Discard deletes what the Claim may have left under the name. It returns once that is
// done, or was refused (then it goes on in the background), or the connection is closed.
// last is a Node of the Claim that is leaving; nil: none is. Nothing else is done with
// the Claim after that.
func (c *Claim) Discard(log *slog.Logger, last *Node) error {
	ctx := context.Background()
	if c.creating != nil {
		// First, and also on a closed connection: a create under way uses the Claim.
		<-c.creating.Done()
		if n, _ := c.creating.Wait(ctx); n != nil {
			n.Withdraw()
			_ = n.AwaitRemoval(ctx)
		}
	}
	if last != nil {
		_ = last.AwaitRemoval(ctx)
	}
	if len(c.sent) == 0 {
		return nil
	}
	try := func() error {
		if err := c.delete(c.isOwn); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		return nil
	}
	return deleteOrInsist(c.conn, log, c.path, try, func(error) {})
}

// forget takes note that n's znode has gone.
func (c *Claim) forget(n *Node) {
	kept := c.sent[:0:0]
	for _, s := range c.sent {
		if s.node != n {
			kept = append(kept, s)
		}
	}
	c.sent = kept
}
