package recipes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/registration"
	"github.com/zkrecipes/recipes/internal/usercode"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/internal/znode"
)

// PersistentNode keeps an ephemeral znode in existence, as Curator's recipe of that name
// does: from Start or the first Await to Close, over outages, ended sessions, a deletion
// by others and a missing parent. Use it to register what this process offers, for as
// long as it runs; see also [GroupMember] and docs/registration.md. A lost znode is
// created again in the background as soon as there is a session. One that others delete
// is created again at once, and then every one or two seconds at most.
//
// The path is also a lock on that name. A znode that a former session of this value left
// behind is deleted and replaced. Another session's znode is another's: its end is waited
// for. So is that of another value for the same path through the same Conn.
type PersistentNode struct {
	conn     Conn
	path     string
	settings settings
	keeper   *registration.Keeper
	reporter *reporter
	teller   teller // of the keeper's goroutine

	mu     sync.Mutex // guards what follows
	hold   *Hold      // behind the last znode; nil: there was none
	closed bool
}

// NewPersistentNode returns a PersistentNode for the znode at path, with data. It sends
// nothing. Parents that are missing are created as containers. The session needs CREATE
// and DELETE on the parent, and READ and WRITE on the znode. [WithACL], [WithLogger],
// [WithObserver], [WithServerTick] and [WithSessionTimeout] apply; other options are
// errors.
func NewPersistentNode(
	conn Conn, path string, data []byte, opts ...Option,
) (*PersistentNode, error) {
	n, err := newPersistentNode(conn, path, data, opts)
	return n, refuse("NewPersistentNode", path, err)
}

func newPersistentNode(
	conn Conn, path string, data []byte, opts []Option,
) (*PersistentNode, error) {
	s, err := build(conn, path, opts)
	switch {
	case err != nil:
		return nil, err
	case len(s.ofLocks) > 0:
		return nil, fmt.Errorf("%s: it is for locks", strings.Join(s.ofLocks, ", "))
	case path == "/":
		return nil, errors.New("the root is no ephemeral znode; name a path below it")
	}
	if err := s.checkData("data", conn, path, data); err != nil {
		return nil, err
	}
	n := &PersistentNode{conn: conn, path: path, settings: s}
	n.reporter = &reporter{
		recipe: "persistent node", path: path, conn: conn, observer: s.observer,
	}
	dir, name := zkpath.Split(path)
	spec := s.spec(dir, name)
	spec.Data = append([]byte{}, data...)
	config := s.sessionConfig(conn)
	n.keeper = registration.New(
		spec, func() *zkconn.Conn { return zkconn.Use(conn, config) }, registrar{n},
	)
	return n, nil
}

// Path returns the path of the znode.
func (n *PersistentNode) Path() string { return n.where() }

// where is the path, "" of a nil or zero value.
func (n *PersistentNode) where() string {
	if n == nil {
		return ""
	}
	return n.path
}

// Start begins to keep the znode, in the background, and returns at once. Use it if the
// program need not wait for the znode. A permanent error, such as a missing permission,
// ends that, and is logged ([WithLogger]); Start or Await begins again. Once there was a
// znode, a missing permission ends nothing: the next one is tried again, every 30 s at
// most and at each reconnect. After the first call, and after Close, it does nothing.
func (n *PersistentNode) Start() {
	if n.where() != "" {
		n.keeper.Start()
	}
}

// Await calls Start, and returns once the znode exists and can be relied on. ctx bounds
// only the wait. If it ends while another session's znode is at the path, the error
// matches ErrBusy and zk.ErrNodeExists, and names that session and its data; in the pause
// after others have deleted the znode again, it matches ErrBusy; and otherwise
// ErrUnavailable. A permanent error ends the wait, as does Close: one is a znode at the
// path that is not ephemeral.
func (n *PersistentNode) Await(ctx context.Context) error {
	if err := usable("await", n.where(), ctx); err != nil {
		return err
	}
	return wrap("await", n.path, n.keeper.Await(ctx))
}

// Hold returns the hold behind the znode as it is now: its Lost closes before the servers
// can delete the znode for lack of contact, its FencingToken grows with each later znode,
// and its Multi writes only while the znode exists. It is nil before the first znode,
// between a loss and the next one, and after Close. Its Release is ErrNotOwner.
//
// Multi and CheckOp check the version of the znode's data. So they fail, without a loss,
// if the data is changed meanwhile, by SetData or by others; a CheckOp is good until the
// next SetData. One that is called after a loss or Close never succeeds; one that was
// called before can, if another's znode has that version (see docs/registration.md).
func (n *PersistentNode) Hold() *Hold {
	if n.where() == "" {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.hold == nil || n.hold.Err() != nil {
		return nil
	}
	return n.hold
}

// SetData sets the data of the znode, now and each time that it is created again. Of
// several calls the last one wins, in the order in which they were made. It returns once
// a znode has the data, or data that was set later. If ctx ends first, the error says so,
// and the data is set in the background. If ZooKeeper rejects the request, it returns
// that error: the znode keeps its data, and only a later one has the new data. If a
// permanent error has ended what Start began, it returns that. Before Start it returns at
// once.
func (n *PersistentNode) SetData(ctx context.Context, data []byte) error {
	const op = "set data of"
	err := usable(op, n.where(), ctx)
	if err != nil {
		return err
	}
	if err = n.settings.checkData("data", n.conn, n.path, data); err == nil {
		err = n.keeper.SetData(ctx, append([]byte{}, data...))
	}
	if outcome.Cancellation(err) != nil {
		err = fmt.Errorf("not confirmed; it is being set in the background: %w", err)
	}
	return wrap(op, n.path, err)
}

// Close deletes the znode, and ends every Await with an error. It waits for the answer as
// Release does, with the same errors: ErrLockLost means that the znode had gone before,
// although no loss was known. If ctx ends first, the delete goes on in the background for
// as long as the connection lasts. It never comes back. Closing twice, before Start, or
// between a loss and the next znode, is no error; a second Close does not wait for the
// first.
func (n *PersistentNode) Close(ctx context.Context) error {
	if err := usable("close", n.where(), ctx); err != nil {
		return err
	}
	return wrap("close", n.path, n.close(ctx))
}

func (n *PersistentNode) close(ctx context.Context) error {
	n.mu.Lock()
	n.closed = true
	hold := n.hold
	n.mu.Unlock()
	if hold != nil { // without the mutex: that asks ctxs of the user's
		hold.markReleased() // as Hold.end does; but the Keeper deletes the znode
		callOrElse(hold.endDependents, func() { n.keeper.Stop() })
	}
	within, cancel := forRelease(ctx)
	defer cancel()
	removal, err := n.keeper.Close(within, func(late registration.Removal) {
		registrar{n}.tell(func() { _ = n.finish(context.Background(), late) })
	})
	if err != nil {
		return err
	}
	if err := n.finish(within, removal); err != nil {
		return err
	}
	if removal.AwaitFormer == nil {
		return nil
	}
	err = removal.AwaitFormer(within)
	switch {
	case errors.Is(err, outcome.ErrClosed): // the session takes the znode along
		return nil
	case outcome.Cancellation(err) != nil:
		return fmt.Errorf("close not confirmed; what may be left of %s is being deleted "+
			"in the background: %w", n.path, err)
	}
	return err
}

// finish waits for the delete of the znode that was held, and tells the observer.
func (n *PersistentNode) finish(ctx context.Context, r registration.Removal) error {
	if r.AwaitDelete == nil { // there was none
		return nil
	}
	return leaving{grant: n.hold.grant, awaitDelete: r.AwaitDelete}.finish(ctx, nil)
}

// A registrar is what a PersistentNode does for its keeper. It implements
// [registration.Owner].
type registrar struct{ *PersistentNode }

func (r registrar) Obtaining() { r.teller = newTeller(context.Background(), r.reporter) }

func (r registrar) IsTaken() { r.tell(func() { r.teller.Queued("", 1) }) }

func (r registrar) Failed(err error) { r.tell(func() { r.teller.failed(err) }) }

// tell calls the observer. Where that panics, or ends the goroutine, the znode is kept
// all the same.
func (r registrar) tell(f func()) {
	if r.reporter.observer == nil {
		return
	}
	if err := usercode.Contain("the observer", f); err != nil {
		usercode.Logger(r.settings.logger).Error(
			"zookeeper registration: observer failed", "node", r.path, "error", err)
	}
}

// Held makes the Hold behind a znode.
func (r registrar) Held(node *znode.Node) {
	g := new(grant).restOn(soleZnode{node}, r.teller.reporter)
	g.unreleasable = errKept
	r.mu.Lock()
	r.hold = &Hold{grant: g} // nobody gets it if the PersistentNode is closed by now
	r.mu.Unlock()
	r.tell(func() { r.teller.acquired(func() {}, g) })
}

var errKept = fmt.Errorf("%w: the znode belongs to its PersistentNode; to end it, call "+
	"Close", ErrNotOwner)
