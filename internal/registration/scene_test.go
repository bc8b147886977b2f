package registration_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/registration"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// The names by which the tests know what they share.

var (
	newPeer = queuetest.NewPeer
	bounded = queuetest.Bounded
	bubble  = queuetest.Bubble
)

const (
	dir  = "/group"
	name = "one"
	path = dir + "/" + name
)

// A counted connection notes what is asked, and when.
type counted struct {
	*zk.Conn
	answer  chan struct{} // a create is answered once it is closed; nil: at once
	deaf    bool          // the watches on data do not fire
	slow    time.Duration // how long after its event a watch is closed
	tooLong bool          // all data are longer than the client accepts
	mu      sync.Mutex    // guards what follows
	asked   []request
	before  func(path string) error // see setBefore
}

type request struct {
	op string
	at time.Time
}

func (c *counted) note(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, request{op, time.Now()})
}

func (c *counted) noteRead(op, path string) error {
	c.note(op)
	c.mu.Lock()
	before := c.before
	c.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(path)
}

// setBefore has f called before each read and list, which fails with its error; nil:
// nobody is.
func (c *counted) setBefore(f func(path string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = f
}

// reset forgets what was asked, and returns it.
func (c *counted) reset() (asked []request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked, c.asked = c.asked, nil
	return asked
}

// ops are what was asked, in order.
func (c *counted) ops() (ops []string) {
	for _, r := range c.reset() {
		ops = append(ops, r.op)
	}
	return ops
}

func (c *counted) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	c.note("create")
	created, err := c.Conn.Create(path, data, flags, acl)
	if c.answer != nil {
		<-c.answer
	}
	return created, err
}

func (c *counted) Get(path string) ([]byte, *zk.Stat, error) {
	if err := c.noteRead("get", path); err != nil {
		return nil, nil, err
	}
	if c.tooLong {
		return nil, nil, outcome.ReplyTooLong{}
	}
	return c.Conn.Get(path)
}

func (c *counted) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	if err := c.noteRead("watch", path); err != nil {
		return nil, nil, nil, err
	}
	if c.tooLong {
		return nil, nil, nil, outcome.ReplyTooLong{}
	}
	data, stat, events, err := c.Conn.GetW(path)
	if c.deaf {
		events = make(chan zk.Event)
	}
	return data, stat, c.closedLate(events), err
}

// closedLate is a watch that passes its event on, and is closed a moment after that, if
// it is slow: the client's goroutine may be stopped between the two.
func (c *counted) closedLate(events <-chan zk.Event) <-chan zk.Event {
	if c.slow == 0 || events == nil {
		return events
	}
	late := make(chan zk.Event, 1)
	go func() {
		late <- <-events
		time.Sleep(c.slow)
		close(late)
	}()
	return late
}

func (c *counted) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	if err := c.noteRead("list", path); err != nil {
		return nil, nil, nil, err
	}
	children, stat, events, err := c.Conn.ChildrenW(path)
	return children, stat, c.closedLate(events), err
}

func (c *counted) Delete(path string, version int32) error {
	c.note("delete")
	return c.Conn.Delete(path, version)
}

func (c *counted) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	c.note("set")
	return c.Conn.Set(path, data, version)
}

// count wraps a peer's connection.
func count(t *testing.T, p *queuetest.Peer) *counted {
	t.Helper()
	c := &counted{Conn: p.Conn}
	p.S = zkconn.Use(c, zkconn.Config{
		Timeout: func() time.Duration { return queuetest.Timeout }, InOrder: true,
		ServerTick: queuetest.Tick,
	})
	t.Cleanup(p.S.Release)
	return c
}

// An owner notes what it is told.
type owner struct {
	mu    sync.Mutex
	told  []string
	nodes []*znode.Node
	times []time.Time // when they were held
	held  func()      // called with each znode; nil: nobody cares
}

func (o *owner) tell(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, what)
}

func (o *owner) Obtaining()   { o.tell("obtaining") }
func (o *owner) IsTaken()     { o.tell("taken") }
func (o *owner) Failed(error) { o.tell("failed") }

// all is what it was told, in order.
func (o *owner) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.told)
}

func (o *owner) Held(n *znode.Node) {
	o.tell("held")
	o.mu.Lock()
	o.nodes, o.times = append(o.nodes, n), append(o.times, time.Now())
	f := o.held
	o.mu.Unlock()
	if f != nil {
		f()
	}
}

// heldAt is when each znode was held.
func (o *owner) heldAt() []time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.times)
}

// last is the znode that was held last.
func (o *owner) last() *znode.Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nodes[len(o.nodes)-1]
}

// newKeeper returns a Keeper of path through a peer, which is closed at the end.
func newKeeper(
	t *testing.T, p *queuetest.Peer, data string,
) (*registration.Keeper, *owner) {
	t.Helper()
	o := &owner{}
	spec := znode.Spec{
		Dir: dir, Kind: name, Data: []byte(data), ACL: queuetest.Anyone,
		Log: slog.New(slog.DiscardHandler),
	}
	k := registration.New(spec, func() *zkconn.Conn { p.S.Retain(); return p.S }, o)
	t.Cleanup(func() { //nolint:contextcheck // t's is done
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = closeIt(ctx, k)
	})
	return k, o
}

// kept returns a Keeper whose znode is there.
func kept(
	t *testing.T, p *queuetest.Peer, data string,
) (*registration.Keeper, *owner) {
	t.Helper()
	k, o := newKeeper(t, p, data)
	require.NoError(t, k.Await(bounded(t)))
	return k, o
}

// closeIt closes a Keeper, and waits until nothing of it is left.
func closeIt(ctx context.Context, k *registration.Keeper) error {
	removal, err := k.Close(ctx, func(registration.Removal) {})
	if err == nil && removal.AwaitDelete != nil {
		err = removal.AwaitDelete(ctx)
	}
	if err == nil && removal.AwaitFormer != nil {
		err = removal.AwaitFormer(ctx)
	}
	return err
}

// create creates a znode of another at path.
func create(t *testing.T, p *queuetest.Peer, data string) {
	t.Helper()
	_, err := p.Create(path, []byte(data), zk.FlagEphemeral, queuetest.Anyone)
	require.NoError(t, err)
}

func mkdir(t *testing.T, p *queuetest.Peer) {
	t.Helper()
	_, err := p.Create(dir, nil, 0, queuetest.Anyone)
	require.NoError(t, err)
}

// requireOwn requires that path is of that peer's session, with those data.
func requireOwn(t *testing.T, seen, by *queuetest.Peer, data string) {
	t.Helper()
	got, stat, err := seen.Get(path)
	require.NoError(t, err)
	require.Equal(t, by.SessionID(), stat.EphemeralOwner)
	require.Equal(t, data, string(got))
}

func requireNone(t *testing.T, seen *queuetest.Peer) {
	t.Helper()
	exists, _, err := seen.Exists(path)
	require.NoError(t, err)
	require.False(t, exists)
}
