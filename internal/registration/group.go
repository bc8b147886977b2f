package registration

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Member is a znode of a group, as it was read.
type Member struct {
	Name string
	Data []byte
	Stat *zk.Stat
}

// isSame tells whether nothing of m has changed.
func (m Member) isSame(o Member) bool {
	return m.Name == o.Name && m.Stat.Czxid == o.Stat.Czxid && bytes.Equal(m.Data, o.Data)
}

const (
	// looksAtOnce bounds the reads under way.
	looksAtOnce = 32
	// A reader of a group makes this many reads in each of its rounds, and one list, and
	// no more than ten rounds a second: a group of thousands may restart.
	readsARound = 100
	roundsApart = 100 * time.Millisecond
)

// Members returns the members of the group at dir, by name, as the leader knows it. A
// group that does not exist has none.
func Members(ctx context.Context, conn *zkconn.Conn, dir string) ([]Member, error) {
	if ctx.Err() != nil { // an answer may come before anybody looks
		return nil, outcome.Cancelled(ctx)
	}
	children, err := calls.Call(ctx, conn, func() ([]string, error) {
		children, _, err := conn.List(dir, true)
		return children, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	slices.Sort(children)
	found := []Member{}
	err = eachOf(children, func(name string) *calls.Pending[Member] {
		return calls.Start(conn, func() (m Member, err error) {
			m.Name = name
			m.Data, m.Stat, err = conn.Read(zkpath.Join(dir, name))
			return m, err
		})
	}, func(_ string, p *calls.Pending[Member]) error {
		m, err := p.Wait(ctx)
		switch {
		case err == nil:
			found = append(found, m)
		case !errors.Is(err, zk.ErrNoNode): // it has left meanwhile
			return err
		}
		return nil
	})
	return found, err
}

// eachOf reads each of some names, a few at once, and takes the answers in order.
func eachOf[T any](
	names []string, read func(name string) T, take func(name string, answer T) error,
) error {
	var under []T
	for i := range len(names) + looksAtOnce {
		if at := i - looksAtOnce; at >= 0 && at < len(names) {
			if err := take(names[at], under[at]); err != nil {
				return err
			}
		}
		if i < len(names) {
			under = append(under, read(names[i]))
		}
	}
	return nil
}

// Watch calls tell with the members of the group at dir, by name, now and at each change,
// until it wants no more. It ends as [observe.Queue.Follow] does. What changes faster
// than it is read is told as one change.
func Watch(
	ctx context.Context, conn *zkconn.Conn, dir string, tell func([]Member) (more bool),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := newGroup(conn, dir, tell)
	return observe.FollowChildren(ctx, conn, dir, g.dirty, g.see)
}

func newGroup(conn *zkconn.Conn, dir string, tell func([]Member) (more bool)) *group {
	return &group{
		conn: conn, dir: dir, tell: tell, known: map[string]*known{},
		dirty: make(chan struct{}, 1),
	}
}

// A group is what a reader knows of one. It belongs to the goroutine in Watch.
type group struct {
	conn  *zkconn.Conn
	dir   string
	tell  func([]Member) (more bool)
	known map[string]*known
	dirty chan struct{} // receives when a member's data may have changed

	told  bool
	last  []Member
	round time.Time // when the last one began
}

// A known is a member that was read, with a watch.
type known struct {
	Member
	events  <-chan zk.Event // of the watch
	changed chan struct{}   // closed when it is to be read again
}

func (k *known) isStale() bool {
	select {
	case <-k.changed:
		return true
	default:
		return false
	}
}

// see implements [observe.Reader].
func (g *group) see(
	ctx context.Context, children []string, missed bool,
) (more bool, err error) {
	was := g.known
	g.known = make(map[string]*known, len(children)) // without those that have left
	var unread []string
	for _, name := range children {
		k := was[name]
		if k != nil {
			g.known[name] = k
		}
		if k == nil || missed || k.isStale() {
			unread = append(unread, name)
		}
	}
	if err := g.readAll(ctx, unread); err != nil {
		return true, err
	}
	now := make([]Member, 0, len(children))
	for _, name := range children {
		if k := g.known[name]; k != nil {
			now = append(now, k.Member)
		}
	}
	slices.SortFunc(now, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	if g.told && slices.EqualFunc(now, g.last, Member.isSame) {
		return true, nil
	}
	g.told, g.last = true, now
	return g.tell(slices.Clone(now)), nil
}

// readAll reads members that are not known as they are, in rounds.
func (g *group) readAll(ctx context.Context, unread []string) error {
	if err := g.pause(ctx); err != nil {
		return err
	}
	for some := range slices.Chunk(unread, readsARound) {
		if err := eachOf(some, func(name string) *calls.Pending[*known] {
			return g.read(ctx, name)
		}, g.take(ctx)); err != nil {
			return err
		}
		if len(some) == readsARound {
			if err := g.pause(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// pause waits until the next round may begin.
func (g *group) pause(ctx context.Context) error {
	err := g.conn.Pause(ctx, roundsApart-time.Since(g.round))
	g.round = time.Now()
	return err
}

// read reads a member, with a watch.
func (g *group) read(ctx context.Context, name string) *calls.Pending[*known] {
	return calls.Start(g.conn, func() (*known, error) {
		data, stat, events, err := g.conn.WatchData(ctx, zkpath.Join(g.dir, name))
		if err != nil {
			return nil, err
		}
		return &known{Member{name, data, stat}, events, make(chan struct{})}, nil
	})
}

// await waits for the watch on a member.
func (g *group) await(ctx context.Context, k *known) {
	select {
	case <-k.events:
		g.conn.Received(zkpath.Join(g.dir, k.Name), k.events)
	case <-ctx.Done():
		return
	}
	close(k.changed)
	select {
	case g.dirty <- struct{}{}:
	default: // the reader is about to look
	}
}

// take takes note of a member that was read. One that has left meanwhile is none.
func (g *group) take(ctx context.Context) func(string, *calls.Pending[*known]) error {
	return func(name string, p *calls.Pending[*known]) error {
		k, err := p.Wait(ctx)
		switch {
		case err == nil:
			if old := g.known[name]; old != nil && old.events == k.events {
				k.changed = old.changed // the same watch, which is awaited
			} else {
				go g.await(ctx, k)
			}
			g.known[name] = k
		case errors.Is(err, zk.ErrNoNode):
			delete(g.known, name)
		default:
			return err
		}
		return nil
	}
}
