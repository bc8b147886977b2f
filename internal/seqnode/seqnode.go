// Package seqnode is the queue that every recipe stands in: a directory of ephemeral
// sequential znodes. A recipe is a name for its znodes and a Rule; joining, waiting and
// leaving are the same for all. The package knows no recipe and no owner.
package seqnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/session"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Rule names the participant that must go before queue[self] may proceed, by its index,
// and -1 when none has to. Of several it names the nearest: when that one has gone after
// having had nothing ahead of it, it is self's turn.
type Rule func(queue []Name, self int) (blocker int)

// A Queue is a recipe's side of one directory. It has no state and is safe for concurrent
// use.
type Queue struct {
	Dir   string
	Kind  string   // what the recipe calls its own znodes
	Kinds []string // whose znodes stand in the queue
	Rule  Rule
	Data  []byte
	ACL   []zk.ACL // of the znodes and of the parents that are made
	// Relist: look again before each grant. Participants may turn up ahead of one that
	// waits: a read lock that is taken under its owner's write lock has that one's
	// number.
	Relist bool
	Log    *slog.Logger
}

// An Entry is one wish to get through the queue.
type Entry struct {
	Try    bool                         // do not wait for another participant
	Queued func(node string, ahead int) // told at each time the queue is joined
	// told of each change of the own znode's data that is seen while the znode is minded
	Changed func(data []byte)
	// closed once Changed matters, from then on the znode is minded at once
	Minded <-chan struct{}
}

var (
	// ErrBusy says that it is not the turn of an Entry that does not wait.
	ErrBusy = session.Permanent(errors.New("not free"))
	// ErrGone says that somebody deleted the znode.
	ErrGone = errors.New("the znode was deleted (by somebody, or because the session ended)")
)

// errUnlisted is ErrGone as far as a list tells, which may be wrong: something between us
// and the server can have made it up. A znode that is there after all would block
// everybody.
var errUnlisted = fmt.Errorf("%w: it is not in its directory", ErrGone)

// errRejoin ends one stay in the queue: the znode is gone, the next stay begins at the
// tail.
var errRejoin = session.Permanent(errors.New("the place in the queue was lost"))

const (
	// leaveWithin is what a call that gives up waits for its delete, so that it usually
	// leaves nothing behind.
	leaveWithin = 100 * time.Millisecond
	// safetyPoll is the shortest time after which a waiter looks for itself although
	// nothing was told, and half of the longest. It guards against a lost watch, of which
	// none is known.
	safetyPoll = 30 * time.Second
)

// nextPoll is not the same for all: who began to wait together need not ask together.
func nextPoll() <-chan time.Time {
	return time.After(safetyPoll + rand.N(safetyPoll)) //nolint:gosec // no secret
}

// Enter joins the queue and waits for its turn; the Node that it returns is held.
// Outages, ended sessions and a deleted znode do not end the wait; ctx, a closed
// connection and what no retry mends do, and leave no znode behind. An error tells where
// it stood.
func (q *Queue) Enter(ctx context.Context, s *session.Session, e Entry) (*Node, error) {
	var backoff session.Backoff
	for {
		asked := time.Now()
		n, err := q.newCreation(s, e.Changed).join(ctx)
		if err != nil {
			return nil, Standing(ctx, s, err, "", asked)
		}
		n.asked = asked
		if err = n.await(ctx, &e); err == nil && ctx.Err() == nil {
			return n, nil
		}
		if !errors.Is(err, errRejoin) {
			if err == nil {
				err = context.Cause(ctx) // it came too late
			}
			err = Standing(ctx, s, err, n.turn.String(), n.asked)
			giveUp(ctx, []*Node{n})
			return nil, err
		}
		q.Log.Info(
			"zookeeper lock: joining the queue anew", "node", n.Path, "cause", n.Cause(),
		)
		if err := s.Pause(ctx, backoff.Next()); err != nil {
			return nil, Standing(ctx, s, err, "", asked)
		}
	}
}

// await waits until it is n's turn and marks it as held.
func (n *Node) await(ctx context.Context, e *Entry) error {
	var backoff session.Backoff
	for first := true; ; first = false {
		t, err := n.place(ctx)
		if err != nil {
			return err
		}
		n.turn = t
		if first && e.Queued != nil {
			n.queued(e, t.ahead)
		}
		if t.blocker != "" {
			if e.Try {
				return ErrBusy
			}
			free, err := n.waitFor(ctx, &t, e)
			switch {
			case session.Final(err):
				return err
			case err != nil:
				err = n.s.Pause(ctx, backoff.Next())
			}
			if err != nil {
				return err
			}
			if !free {
				continue
			}
		}
		n.turn, n.asked = turn{}, time.Now()
		if err := n.take(ctx, t.head); !errors.Is(err, session.ErrSuspended) {
			return err
		}
		if err := n.s.Pause(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}

// queued tells the place in the queue. Where the one who is told panics, or ends the
// goroutine, nobody waits any more.
func (n *Node) queued(e *Entry, ahead int) {
	told := false
	defer func() {
		if !told {
			n.Withdraw()
		}
	}()
	e.Queued(n.Path, ahead)
	told = true
}

// A turn is what a listing says of one participant.
type turn struct {
	ahead   int    // how many are ahead
	blocker string // the path of the one to wait for, "" if it is the participant's turn
	local   *Node  // the blocker, if it is of this process
	// nobody blocks once the blocker has gone, and nobody can turn up meanwhile
	last bool
	next bool // nobody stands between the blocker and the participant
	head bool // nobody at all is ahead, once the blocker has gone
}

// place lists the queue until the list tells n's place.
func (n *Node) place(ctx context.Context) (t turn, err error) {
	err = n.s.Retry(ctx, func() (err error) {
		t, err = n.placeOnce(ctx)
		return err
	})
	return t, err
}

func (n *Node) placeOnce(ctx context.Context) (turn, error) {
	for {
		if n.s.SessionID() != n.session {
			n.SessionEnded(session.ErrSessionEnded)
		}
		if n.over.Err() != nil {
			return turn{}, errRejoin
		}
		l, err := n.list(ctx)
		if errors.Is(err, zk.ErrNoNode) { // the directory is gone, or was not there yet
			err = nil
		}
		switch {
		case ctx.Err() != nil:
			return turn{}, context.Cause(ctx)
		case err == nil:
			queue := Sort(l.children, n.q.Kinds)
			if self := slices.IndexFunc(
				queue, func(m Name) bool { return m.Text == n.name.Text },
			); self >= 0 {
				n.discardStrays(l.children)
				if self == len(queue)-1 && n.token == 0 {
					n.token = l.pzxid
				}
				return n.turnIn(queue, self), nil
			}
			if l.proven {
				n.end(errUnlisted)
			}
			continue // else the list has overtaken the create
		default:
			return turn{}, err
		}
	}
}

// turnIn applies the rule. The znodes of this process that have left do not count: their
// deletes are under way. Those that guard a transaction count until they are gone.
func (n *Node) turnIn(queue []Name, self int) turn {
	for {
		at := n.q.Rule(queue, self)
		if at < 0 {
			return turn{ahead: self, head: self == 0}
		}
		t := turn{
			ahead: self, blocker: zkpath.Join(n.q.Dir, queue[at].Text),
			next: at == self-1,
		}
		t.local = n.neighbour(t.blocker)
		queue = slices.Delete(queue, at, at+1)
		self--
		if t.local != nil && t.local.over.Err() != nil {
			if t.local.gone() {
				continue
			}
			t.local = nil
		}
		t.last = n.q.Rule(queue, self) < 0 && !n.q.Relist
		t.head = self == 0
		return t
	}
}

// waitFor waits for the blocker to go. It returns whether it is n's turn then, without
// asking; else the queue is to be listed again.
func (n *Node) waitFor(ctx context.Context, t *turn, e *Entry) (free bool, err error) {
	switch {
	case n.token == 0: // the token takes a read, and now is the time for it
		n.Mind()
	// no list will come before the grant, which others may have
	case t.local == nil && t.last:
		n.Mind()
	default: // the list that will tell that the own znode is gone can be hours away
		n.mindSoon()
	}
	var gone, reconnected <-chan struct{}
	var events <-chan zk.Event
	var poll <-chan time.Time // of a blocker of this process its Node tells
	if t.local != nil {
		gone = t.local.over.Done()
	} else {
		reconnected, poll = n.reconnected, nextPoll()
		switch events, err = n.s.Watch(ctx, t.blocker); {
		case errors.Is(err, zk.ErrNoNode):
			return t.last && n.stands(ctx), nil
		case err != nil:
			return false, err
		}
	}
	minded := e.Minded
	for {
		select {
		case <-gone:
			// A neighbour that was lost may have gone together with the own znode.
			t.head = t.next
			return t.local.handedOver() && !n.q.Relist, nil
		case ev := <-events:
			if errors.Is(ev.Err, zk.ErrClosing) {
				n.s.ConnClosed()
			}
			return t.last && ev.Type == zk.EventNodeDeleted && n.stands(ctx), nil
		case <-n.over.Done():
			return false, errRejoin
		case <-minded:
			n.Mind()
			minded = nil
		case <-reconnected:
			return false, nil
		case <-poll:
			// The list can have shown a node of this process before the answer to its
			// create was here.
			if t.local = n.neighbour(t.blocker); t.local != nil {
				return n.waitFor(ctx, t, e)
			}
			if n.s.Missing(ctx, t.blocker) {
				return false, nil
			}
			poll = nextPoll()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-n.s.Closed():
			return false, n.s.Pause(ctx, 0)
		}
	}
}

// A listing is the children of the directory.
type listing struct {
	children []string
	pzxid    int64 // of the last create or delete in the directory
	proven   bool  // the request was made after the own create was answered
}

func (q *Queue) list(s *session.Session) (listing, error) {
	children, stat, err := s.Children(q.Dir)
	if err != nil {
		return listing{}, err
	}
	return listing{children: children, pzxid: stat.Pzxid}, nil
}

// list returns the listing that was sent behind the create, the first time, and a new one
// after that.
func (n *Node) list(ctx context.Context) (listing, error) {
	if first := n.first; first != nil {
		n.first = nil
		return first.Wait(ctx)
	}
	l, err := session.Start(n.s, func() (listing, error) {
		if err := n.syncOnce(n.q); err != nil {
			return listing{}, err
		}
		return n.q.list(n.s)
	}).Wait(ctx)
	l.proven = true
	return l, err
}

// listAndWatch is list for a directory whose children n waits to leave.
func (n *Node) listAndWatch(
	ctx context.Context, q *Queue,
) (l listing, left <-chan zk.Event, err error) {
	_, err = session.Start(
		n.s, func() (struct{}, error) { return struct{}{}, n.syncOnce(q) },
	).Wait(ctx)
	if err != nil {
		return l, nil, err
	}
	children, stat, left, err := n.s.WatchChildren(ctx, q.Dir)
	if err == nil {
		l = listing{children: children, pzxid: stat.Pzxid}
	}
	l.proven = true
	return l, left, err
}

// syncOnce syncs after a reconnect, perhaps to a server that lags behind.
func (n *Node) syncOnce(q *Queue) error {
	select {
	case <-n.reconnected:
		n.reconnected = n.s.Reconnected()
		return q.sync(n.s)
	default:
		return nil
	}
}

func (q *Queue) sync(s *session.Session) error { return s.Sync(q.Dir) }

// Members returns the queue as the leader knows it, in order; a directory that does not
// exist is an empty queue.
func (q *Queue) Members(ctx context.Context, s *session.Session) ([]Name, error) {
	l, err := session.Start(s, func() (listing, error) {
		if err := q.sync(s); err != nil {
			return listing{}, err
		}
		return q.list(s)
	}).Wait(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return Sort(l.children, q.Kinds), nil
}

// Ahead tells how many are ahead of a znode, or of where it was. It takes one list.
func (q *Queue) Ahead(ctx context.Context, s *session.Session, node string) (int, error) {
	l, err := session.Start(s, func() (listing, error) { return q.list(s) }).Wait(ctx)
	self, _ := Parse(node[len(q.Dir):], q.Kinds)
	ahead := 0
	for _, m := range Sort(l.children, q.Kinds) {
		if compare(m, self) < 0 {
			ahead++
		}
	}
	return ahead, err
}

// Path returns the path of a member.
func (q *Queue) Path(m Name) string { return zkpath.Join(q.Dir, m.Text) }
