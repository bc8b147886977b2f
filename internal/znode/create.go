package znode

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// ErrNoDir says that the directory was missing, and was made.
var ErrNoDir = errors.New("the parent znode was missing")

// A creation is one znode on its way into a directory.
type creation struct {
	// Set by Join.
	s      *zkconn.Conn
	spec   *Spec
	hooks  Hooks
	id     string
	number string
	claim  claimant // of a znode with a given name; else nil

	dir     Dir  // of the goroutine in Join
	missing bool // the directory was; likewise
	// creates so far; of the goroutine in create, and of that in Join while there is none
	sent int
}

// A claimant creates the znode of a creation, in place of create: a [Claim].
type claimant interface {
	naming
	create(by *creation) (*Node, error)
	began(creating *calls.Pending[*Node])
}

// Join creates a znode, in a directory that it creates if that is missing. The znode's
// name is "_c_", a new id, "-", Spec.Kind and number; with "" the server appends the next
// sequence number. A Join that fails leaves no directory that it created: a server does
// not reap one that never had a child. One that runs out of time leaves it for a while:
// see Dir. If a create is not waited for any more, what it creates is withdrawn.
func Join(
	ctx context.Context, s *zkconn.Conn, spec *Spec, number string, hooks Hooks,
) (*Node, error) {
	version := byte(versionRandom)
	if spec.Cached {
		version = versionCached
	}
	c := &creation{
		s: s, spec: spec, hooks: hooks, id: newID(version), number: number,
		dir: Dir{s: s, path: spec.Dir, acl: spec.ACL},
	}
	return c.join(ctx)
}

// join creates the znode, and the directory if that is missing.
func (c *creation) join(ctx context.Context) (n *Node, err error) {
	err = c.s.Retry(ctx, func() (err error) {
		n, err = c.try(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return outcome.Cancelled(ctx)
		case errors.Is(err, outcome.ErrClosed): // create may be under way
			return err
		case errors.Is(err, zk.ErrNoNode) && c.claim != nil && c.dir.made != nil:
			return outcome.Permanent(ErrNoDir)
		case errors.Is(err, zk.ErrNoNode):
			c.missing = true
			if err := c.dir.Make(ctx); err != nil {
				return err
			}
			return ErrNoDir
		}
		return err
	})
	if err == nil {
		if c.spec.Joined != nil {
			c.spec.Joined(c.s)
		}
		return n, nil
	}
	if n != nil { // refused by Hooks.Created
		GiveUp(ctx, []*Node{n})
	}
	c.dir.Unmake(ctx)
	if c.missing && outcome.Cancellation(err) != nil && !c.s.Unavailable() {
		err = fmt.Errorf("%w: %w", err, &MissingError{c.spec.Dir, RanOut(ctx)})
	}
	return nil, err
}

// A MissingError says why the time of a Join was over although ZooKeeper answers. Nobody
// knows how the queue stands, so it matches zkconn.ErrNoAnswer.
type MissingError struct {
	dir  string
	kept bool
}

func (e *MissingError) Error() string {
	next := ""
	if e.kept {
		next = ", and stays for the next attempt"
	}
	return fmt.Sprintf("the parent znode %s had to be created first%s", e.dir, next)
}

func (e *MissingError) Unwrap() error { return zkconn.ErrNoAnswer }

// try sends one create and waits for its outcome. A Node with an error was refused by
// Hooks.Created.
func (c *creation) try(ctx context.Context) (*Node, error) {
	if err := c.s.BeginCreate(ctx); err != nil {
		return nil, err
	}
	created := calls.Start(c.s, func() (*Node, error) {
		defer c.s.EndCreate()
		n, err := c.createOnce()
		if refusal := c.hooks.Created(n); refusal != nil {
			return n, outcome.Permanent(refusal)
		}
		return n, err
	})
	if c.claim != nil {
		c.claim.began(created)
	}
	n, err := created.Wait(ctx)
	if n == nil && (ctx.Err() != nil || errors.Is(err, outcome.ErrClosed)) {
		created.Then(c.s, func(n *Node, _ error) {
			if n != nil {
				n.Withdraw()
			}
		})
	}
	return n, err
}

func (c *creation) createOnce() (*Node, error) {
	if c.claim != nil {
		return c.claim.create(c)
	}
	return c.create()
}

// create creates the znode and finds out what became of it: a Node that has it, or an
// error that says that there is none.
func (c *creation) create() (*Node, error) {
	flags := int32(zk.FlagEphemeral)
	if c.number == "" {
		flags |= zk.FlagSequence
	}
	name := protectedPrefix + c.id + "-" + c.spec.Kind + c.number
	session := c.s.SessionID()
	// What it starts needs longer to start than this one to put the create in the
	// client's queue.
	c.hooks.Sending()
	c.sent++
	asked := zkpath.Join(c.spec.Dir, name)
	path, err := c.s.Create(asked, c.spec.Data, flags, c.spec.ACL)
	// One that exists is ours: from another session, if not from this one.
	if outcome.NotDone(err) && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	// The client runs a call that it had queued in the next session, too. Session ids do
	// not come back: the same one before and after is the znode's.
	if err == nil && session != 0 && c.s.SessionID() == session {
		return c.newNode(path, session, c.s.CreatedAt(asked)), nil
	}
	n, err := c.find()
	if outcome.Refused(err) && errors.As(err, new(unsearched)) {
		c.oweSearch(err)
	}
	return n, err
}

// An unsearched says why the directory could not be searched.
type unsearched struct{ error }

func (u unsearched) Unwrap() error { return u.error }

// oweSearch goes on with a search that was refused, and with it the wait that it was made
// for: the znode may be there, and nobody knows its name. What it finds is deleted.
func (c *creation) oweSearch(refusal error) {
	s, spec, id, session := c.s, c.spec, c.id, c.s.SessionID()
	spec.Log.Error("zookeeper lock: search refused; a znode of unknown outcome is still "+
		"being deleted, until its session ends", "dir", spec.Dir, "id", id,
		"error", refusal)
	calls.Start(s, func() (none struct{}, _ error) {
		return none, s.Insist(func() error {
			if s.SessionID() != session {
				return outcome.Permanent(outcome.ErrSessionEnded)
			}
			children, err := search(s, spec.Dir)
			for _, child := range children {
				if hasID(child, id) {
					discard(s, spec.Log, zkpath.Join(spec.Dir, child), session)
				}
			}
			return err
		})
	})
}

// search lists the directory as the leader has it now: the server that we came back to
// may lag behind the create.
func search(s *zkconn.Conn, dir string) ([]string, error) {
	err := s.Sync(dir)
	if err == nil {
		var children []string
		children, _, err = s.Children(dir)
		if err == nil {
			return children, nil
		}
	}
	return nil, unsearched{err}
}

// find looks for the znode of a create of unknown outcome, until it knows. A znode of
// another session is not taken over: its server is about to remove it (CURATOR-498,
// CURATOR-604).
func (c *creation) find() (*Node, error) {
	var n *Node
	err := c.s.Retry(context.Background(), func() (err error) {
		n, err = c.findOnce()
		return err
	})
	if n == nil && (err == nil || errors.Is(err, zk.ErrNoNode)) {
		return nil, errNotCreated
	}
	return n, err
}

func (c *creation) findOnce() (*Node, error) {
	session := c.s.SessionID()
	children, err := search(c.s, c.spec.Dir)
	if err != nil {
		return nil, err
	}
	var own string
	var czxid int64
	var refusal error
	for _, child := range children {
		if !hasID(child, c.id) {
			continue
		}
		path := zkpath.Join(c.spec.Dir, child)
		stat, err := c.s.Stat(path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil && !outcome.Final(err):
			return nil, err // nothing is discarded that the next search may take over
		case err == nil && own == "" && c.livesIn(session, stat):
			own, czxid = path, stat.Czxid
		default:
			discard(c.s, c.spec.Log, path, session)
			refusal = err
		}
	}
	if own == "" {
		return nil, refusal
	}
	return c.newNode(own, session, czxid), nil
}

// livesIn tells whether a znode that was read just now is the given session's, and that
// still the connection's.
func (c *creation) livesIn(session int64, stat *zk.Stat) bool {
	return stat.EphemeralOwner == session && c.s.SessionID() == session
}

// MayHaveOrphans tells whether a create of unknown outcome may have left another znode.
func (n *Node) MayHaveOrphans() bool { return n.orphans }

// DiscardOrphan deletes the znode of that name if it is one with n's id.
func (n *Node) DiscardOrphan(name string) {
	if !hasID(name, n.id) || name == n.Name() {
		return
	}
	discard(n.s, n.spec.Log, zkpath.Join(n.spec.Dir, name), n.session)
}

// newNode takes a znode that surely lives in the given session. czxid is 0 where it is
// not known.
func (c *creation) newNode(path string, session, czxid int64) *Node {
	n := &Node{
		Path: path, spec: c.spec, s: c.s, hooks: c.hooks, id: c.id, orphans: c.sent > 1,
		session: session,
		self:    selfWatch{firstRead: make(chan struct{})},
		life:    life{margin: c.spec.LossMargin},
	}
	if c.claim != nil {
		n.named = &named{naming: c.claim}
	}
	n.token.Store(czxid)
	n.over.ctx, n.over.now = context.WithCancel(context.Background())
	n.loss.ctx, n.loss.now = context.WithCancelCause(context.Background())
	c.s.Retain() // until it is removed
	c.s.Track(path, session, n)
	return n
}
