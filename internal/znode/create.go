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
	// Set by Create, and by Claim.Create.
	conn   *zkconn.Conn
	spec   *Spec
	hooks  Hooks
	id     string
	number string
	claim  *Claim // of a znode with a given name; else nil

	dir     Dir  // of the goroutine in Create
	missing bool // the directory was; likewise
	// creates so far; it belongs to the goroutine that sends one and, before and after
	// that, to the one in Create
	sent int
}

// NextNumber is the number of Create with which the server appends the next one of the
// directory's sequence.
const NextNumber = ""

// Create creates a znode, in a directory that it creates if that is missing. The znode's
// name is "_c_", a new id, "-", Spec.Kind and number. A Create that fails leaves no
// directory that it created: a server does not reap one that never had a child. One that
// runs out of time leaves it for a while: see Dir. If a create is not waited for any
// more, what it creates is withdrawn.
func Create(
	ctx context.Context, conn *zkconn.Conn, spec *Spec, number string, hooks Hooks,
) (*Node, error) {
	c := &creation{
		conn: conn, spec: spec, hooks: hooks, id: newID(spec.mark()), number: number,
		dir: Dir{conn: conn, path: spec.Dir, acl: spec.ACL},
	}
	return c.run(ctx)
}

// run creates the znode, and the directory if that is missing.
func (c *creation) run(ctx context.Context) (n *Node, err error) {
	err = c.conn.Retry(ctx, func() (err error) {
		n, err = c.try(ctx)
		return err
	})
	if err == nil {
		if c.spec.Joined != nil {
			c.spec.Joined(c.conn)
		}
		return n, nil
	}
	if n != nil { // rejected by Hooks.Created
		GiveUp(ctx, []*Node{n})
	}
	c.dir.Unmake(ctx)
	// The caller's time was too short for the directory, and not for others ahead of it.
	if c.missing && outcome.Cancellation(err) != nil && !c.conn.Unavailable() {
		err = fmt.Errorf("%w: %w", err, &MissingError{c.spec.Dir, RanOut(ctx)})
	}
	return nil, err
}

// try sends one create and waits for its outcome. A Node with an error was rejected by
// Hooks.Created.
func (c *creation) try(ctx context.Context) (*Node, error) {
	if err := c.conn.BeginCreate(ctx); err != nil {
		return nil, err
	}
	// The request cannot be cancelled, so it has a goroutine of its own. That also calls
	// the hooks: the queue learns of the znode even if nobody waits here any more.
	created := calls.Start(c.conn, func() (*Node, error) {
		defer c.conn.EndCreate()
		n, err := c.create()
		if rejection := c.hooks.Created(n); rejection != nil {
			return n, outcome.Permanent(rejection)
		}
		return n, err
	})
	if c.claim != nil {
		c.claim.creating = created
	}
	n, err := created.Wait(ctx)
	if n == nil && (ctx.Err() != nil || errors.Is(err, outcome.ErrClosed)) {
		// The create may still be under way. Nobody else knows of the znode, which would
		// block the queue for as long as the session lasts.
		created.Then(c.conn, func(n *Node, _ error) {
			if n != nil {
				n.Withdraw()
			}
		})
	}
	switch {
	case err == nil:
		return n, nil
	case ctx.Err() != nil:
		return n, outcome.Cancelled(ctx)
	case errors.Is(err, zk.ErrNoNode) && c.claim != nil && c.dir.made != nil:
		// It was made, and is gone again. The caller keeps a znode and comes back anyway.
		return n, outcome.Permanent(ErrNoDir)
	case errors.Is(err, zk.ErrNoNode):
		// Only now, since the directory is there as a rule. Retry comes back here.
		c.missing = true
		if err := c.dir.Make(ctx); err != nil {
			return n, err
		}
		return n, ErrNoDir
	}
	return n, err
}

// create creates the znode and finds out what became of it: a Node that has it, or an
// error that says that there is none.
func (c *creation) create() (*Node, error) {
	if c.claim != nil {
		return c.claim.create(c)
	}
	flags := int32(zk.FlagEphemeral)
	if c.number == NextNumber {
		flags |= zk.FlagSequence
	}
	name := protectedPrefix + c.id + "-" + c.spec.Kind + c.number
	session := c.conn.SessionID()
	// Sending starts a list, most likely. Its goroutine needs longer to start than this
	// one needs to hand the create to the client, so the server gets the create first. If
	// the list overtakes it all the same, it does not show the znode, and does not count.
	c.hooks.Sending()
	c.sent++
	prefix := zkpath.Join(c.spec.Dir, name) // to which the server appends the number
	path, err := c.conn.Create(prefix, c.spec.Data, flags, c.spec.ACL)
	// Nobody else has the id. So a znode that exists is ours: of an earlier create whose
	// answer was lost.
	if outcome.NotDone(err) && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	// The client also sends a call that it had queued in the next session. Session ids do
	// not come back: the same one before and after is the znode's.
	if err == nil && session != 0 && c.conn.SessionID() == session {
		return c.newNode(path, session, c.conn.CreatedAt(prefix)), nil
	}
	// The outcome is unknown, or the session of the znode is.
	n, err := c.find()
	if outcome.Refused(err) && errors.As(err, new(unsearched)) {
		c.oweSearch(err)
	}
	return n, err
}

// A MissingError says why the time of a Create was over although ZooKeeper answers. The
// state of the queue is unknown, so it matches zkconn.ErrNoAnswer.
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

// An unsearched says why the parent znode could not be listed.
type unsearched struct{ error }

func (u unsearched) Unwrap() error { return u.error }

// oweSearch goes on with a search that was rejected, although the wait has ended with
// that: the znode may be there, and its name is not known. What it finds is deleted.
func (c *creation) oweSearch(refusal error) {
	conn, spec, id, session := c.conn, c.spec, c.id, c.conn.SessionID()
	calls.Start(conn, func() (none struct{}, _ error) {
		return none, conn.Insist(context.Background(), func() error {
			if conn.SessionID() != session {
				return outcome.Permanent(outcome.ErrSessionEnded)
			}
			children, err := search(conn, spec.Dir)
			for _, child := range children {
				if hasID(child, id) {
					discard(conn, spec.Log, zkpath.Join(spec.Dir, child), session)
				}
			}
			return err
		})
	})
	spec.Log.Error("zookeeper lock: search refused; a znode of unknown outcome is still "+
		"being deleted, until its session ends", "dir", spec.Dir, "id", id,
		"error", refusal)
}

// search lists the directory as the leader has it now: the server that we came back to
// may lag behind the create.
func search(conn *zkconn.Conn, dir string) ([]string, error) {
	children, _, err := conn.List(dir, true)
	if err != nil {
		return nil, unsearched{err}
	}
	return children, nil
}

// find looks for the znode of a create of unknown outcome, until it knows. It does not
// take over a znode of another session: its server is about to remove it (CURATOR-498,
// CURATOR-604).
func (c *creation) find() (*Node, error) {
	var n *Node
	err := c.conn.Retry(context.Background(), func() (err error) {
		n, err = c.findOnce()
		return err
	})
	if n == nil && (err == nil || errors.Is(err, zk.ErrNoNode)) {
		return nil, errNotCreated // a list behind a sync does not show it
	}
	return n, err
}

func (c *creation) findOnce() (*Node, error) {
	session := c.conn.SessionID()
	children, err := search(c.conn, c.spec.Dir)
	if err != nil {
		return nil, err
	}
	var own string
	var czxid int64
	var refusal error
	// Several creates of unknown outcome may have left several znodes. One is kept.
	for _, child := range children {
		if !hasID(child, c.id) {
			continue
		}
		path := zkpath.Join(c.spec.Dir, child)
		_, stat, err := c.conn.Read(path)
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil && !outcome.Final(err):
			return nil, err // nothing is discarded that the next search may take over
		case err == nil && own == "" && stat.EphemeralOwner == session &&
			c.conn.SessionID() == session:
			own, czxid = path, stat.Czxid
		default: // one too many, of another session, or one that may not be read
			discard(c.conn, c.spec.Log, path, session)
			refusal = err
		}
	}
	if own == "" {
		return nil, refusal
	}
	return c.newNode(own, session, czxid), nil
}

// newNode makes a Node of a znode that certainly lives in the given session. czxid is 0
// if it is not known.
func (c *creation) newNode(path string, session, czxid int64) *Node {
	n := &Node{
		Path: path, spec: c.spec, conn: c.conn, hooks: c.hooks, id: c.id,
		orphans: c.sent > 1,
		session: session,
		claim:   c.claim,
		self:    selfWatch{firstRead: make(chan struct{})},
	}
	n.token.Store(czxid) // 0 is not known yet: see AwaitToken
	n.ended.ctx, n.ended.cancel = context.WithCancel(context.Background())
	n.loss.ctx, n.loss.cancel = context.WithCancelCause(context.Background())
	c.conn.Retain() // until it is removed
	c.conn.Track(path, session, n)
	return n
}
