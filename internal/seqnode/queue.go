package seqnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/session"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Rule names the participant that must go before self may proceed, by its index among
// those ahead, and -1 when none has to: nobody who joins later comes first. The token by
// the directory's pzxid (positionIn), the grant without a list (position.last), what is
// known of a crowd and the hand-over in a process (passFront) rely on that. What grants
// in another order is no Rule, but an aim of its own. Of several the Rule names the
// nearest: those between that one and self are not in its way, and when it has gone after
// having had nothing ahead of it, it is self's turn.
type Rule func(ahead []Name, self Name) (blocker int)

// A Queue is a recipe's side of one directory. It has no state and is safe for concurrent
// use.
type Queue struct {
	Dir   string   // the path of the directory
	Kind  string   // what the recipe calls its own znodes
	Kinds []string // whose znodes stand in the queue
	Rule  Rule     // of a queue for Enter
	Data  []byte   // of the znodes
	ACL   []zk.ACL // of the znodes and of the parents that are made
	// Relist: look again before each grant. Participants may turn up ahead of one that
	// waits: a read lock that is taken beside its owner's write lock has that one's
	// number.
	Relist bool
	Log    *slog.Logger
	// what should not be in the directory; nil: nobody cares
	Lookout *Lookout
	Keep    Keeping // of a queue for EnterKept
	// LossMargin is by how much earlier than it must Lost is told to who is out of touch,
	// and for how long after that its znode stays; see session.Session.Hold.
	LossMargin time.Duration
	// MaxHold is after what time a hold ends by itself, with ErrExpired; 0: after none.
	MaxHold time.Duration
}

// excludes tells whether one that is ahead must go before another may proceed.
func (q *Queue) excludes(ahead, other Name) bool {
	return q.Rule([]Name{ahead}, other) == 0
}

// A Request is one wish to get through the queue.
type Request struct {
	// TryOnce: do not wait for another participant.
	TryOnce bool
	// OnQueued is told each time that the queue is joined; it may be nil.
	OnQueued func(node string, ahead int)
	// OnData is told of each change of the znode's data that the watch on it shows; it
	// may be nil.
	OnData func(data []byte)
	// WatchSelf is closed once OnData matters: from then on the znode is watched at once.
	// It may be nil.
	WatchSelf <-chan struct{}

	stay *stay // whose wish it is, of a place that is kept; else nil
}

var (
	// ErrBusy says that it is not the turn of a Request that does not wait.
	ErrBusy = session.Permanent(errors.New("not free"))
	// ErrGone says that somebody deleted the znode.
	ErrGone = errors.New(
		"the znode was deleted (by somebody, or because the session ended)")
	// ErrExpired says that a hold has lasted for as long as its queue allows.
	ErrExpired = errors.New("the hold has lasted as long as it may")
)

// errUnlisted is ErrGone as far as a list tells, which may be wrong: something between us
// and the server can have made it up. A znode that is there after all would block
// everybody.
var errUnlisted = fmt.Errorf("%w: it is not in its directory", ErrGone)

// errRejoin ends one stay in the queue: the znode is gone, the next stay begins at the
// tail.
var errRejoin = session.Permanent(errors.New("the place in the queue was lost"))

// Enter joins the queue and waits for its turn; the Node that it returns is held.
// Outages, ended sessions and a deleted znode do not end the wait; ctx, a closed
// connection and what no retry mends do, and leave no znode behind. An error tells where
// it stood.
func (q *Queue) Enter(ctx context.Context, s *session.Session, r Request) (*Node, error) {
	if err := s.Bears(q.LossMargin); err != nil {
		return nil, err
	}
	var backoff session.Backoff
	for {
		asked := time.Now()
		w, err := q.newCreation(s, r.OnData).join(ctx)
		if err != nil {
			return nil, Standing(s, err, "", asked)
		}
		n := w.node
		w.request, w.asked = r, asked
		if err = await(ctx, s, r.TryOnce, w); err == nil && ctx.Err() == nil {
			return n, nil
		}
		if !errors.Is(err, errRejoin) {
			if err == nil {
				err = session.Cancelled(ctx) // it came too late
			}
			err = Standing(s, err, w.position.String(), w.asked)
			giveUp(ctx, []*Node{n})
			return nil, err
		}
		q.Log.Info("zookeeper lock: joining the queue anew",
			"node", n.Path, "cause", n.Cause())
		asked = time.Now()
		if err := s.Pause(ctx, backoff.Next()); err != nil {
			return nil, Standing(s, err, w.position.String(), asked)
		}
	}
}

// Members returns the queue as the leader knows it, in order; a directory that does not
// exist is an empty queue.
func (q *Queue) Members(ctx context.Context, s *session.Session) ([]Name, error) {
	l, err := session.Call(ctx, s, func() (listing, error) {
		if err := q.sync(s); err != nil {
			return listing{}, err
		}
		return q.list(s)
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return q.members(l.children), nil
}

// Ahead tells how many are ahead of a znode, or of where it was. It takes one list.
func (q *Queue) Ahead(ctx context.Context, s *session.Session, node string) (int, error) {
	l, err := session.Call(ctx, s, func() (listing, error) { return q.list(s) })
	_, text := zkpath.Split(node)
	self, _ := parse(text, q.Kinds)
	ahead := 0
	for _, m := range participants(l.children, q.Kinds) {
		if compare(m, self) < 0 {
			ahead++
		}
	}
	return ahead, err
}

// Among returns those children of the directory that stand in the queue, in its order.
func (q *Queue) Among(children []string) []Name { return participants(children, q.Kinds) }

// Path returns the path of a member.
func (q *Queue) Path(m Name) string { return zkpath.Join(q.Dir, m.Text) }

// A listing is the children of the directory.
type listing struct {
	children []string
	pzxid    int64     // of the last create or delete in the directory
	asked    time.Time // just before the request
	// proven: the request was made after the create of the znode that it is to show was
	// answered. A list that is sent right behind the create may overtake it.
	proven bool
}

func (q *Queue) list(s *session.Session) (listing, error) {
	asked := time.Now()
	children, stat, err := s.Children(q.Dir)
	if err != nil {
		return listing{}, err
	}
	return listing{children: children, pzxid: stat.Pzxid, asked: asked}, nil
}

func (q *Queue) sync(s *session.Session) error { return s.Sync(q.Dir) }
