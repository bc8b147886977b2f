package recipes

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// An election is what LeaderSelector and LeaderLatch share. It is a lock with one owner,
// the candidate, whoever calls: leading is to hold it, and a term is a hold.
type election struct {
	lock      *reentrant
	candidate owner
}

// newElection makes a candidate whose znodes have the given name.
func newElection(conn Conn, path, recipe, kind string, opts []Option) (*election, error) {
	settings, err := build(conn, path, opts)
	if err != nil {
		return nil, err
	}
	if settings.caching != nil {
		return nil, errors.New(
			"WithCaching: a candidate whose term has ended goes to the tail of the queue",
		)
	}
	settings.lint = settings.newLint(recipe, path)
	queue := settings.queue(path, kind, []string{kind}, everybody)
	return &election{
		lock:      newReentrant(conn, settings, recipe, queue),
		candidate: aNewOwner(),
	}, nil
}

// where is the election's path, "" of a zero value.
func (e *election) where() string {
	if e == nil {
		return ""
	}
	return e.lock.path
}

// as is the candidate, whoever calls.
func (e *election) as() caller { return caller{self: e.candidate} }

// elect joins the queue and waits until the candidate leads.
func (e *election) elect(ctx context.Context) (*Hold, error) {
	term, err := e.lock.acquireBare(acquisition{caller: e.as(), ctx: ctx})
	if err != nil {
		return nil, err
	}
	term.unreleasable = errTerm
	return term, nil
}

var errTerm = fmt.Errorf("%w: a term belongs to its election; to end it, return from "+
	"lead, or call LeaderLatch.Close", ErrNotOwner)

// stepDown begins to end a term. Its errors are those of a release: ErrLockLost says that
// the term had ended before, and ErrNotOwner that there was none.
func (e *election) stepDown() leaving {
	l := releaseYoungest(e.lock, e.as())
	l.path = "" // the caller adds it, and the operation
	return l
}

// term returns the candidate's term, lost or not; nil: there is none.
func (e *election) term() *Hold { return e.lock.youngest(e.as()) }

// leads tells whether the candidate leads, as far as this process knows.
func (e *election) leads() bool {
	if e == nil {
		return false
	}
	g, _ := e.lock.heldBy(e.candidate)
	return g != nil
}

// Participants is LeaderSelector.Participants.
func (e *election) Participants(ctx context.Context) ([]Participant, error) {
	if err := usable("participants of", e.where(), ctx); err != nil {
		return nil, err
	}
	return e.lock.Participants(ctx)
}

// Leader is LeaderSelector.Leader.
func (e *election) Leader(ctx context.Context) (Participant, bool, error) {
	if err := usable("leader of", e.where(), ctx); err != nil {
		return Participant{}, false, err
	}
	use := zkconn.Use(e.lock.conn, e.lock.config)
	defer use.Release()
	for {
		members, err := e.lock.queue.Observed().Members(ctx, use)
		if err != nil {
			return Participant{}, false, wrapAsked("leader of", e.lock.path, err)
		}
		leader, err := e.lookAtHead(ctx, use, members)
		switch {
		case err == nil:
			return leader.Participant, leader.Node != "", nil
		case !errors.Is(err, observe.ErrMoved):
			return Participant{}, false, wrapAsked("leader of", e.lock.path, err)
		}
	}
}

// lookAtHead returns the first of the members, the zero one if there is none,
// and observe.ErrMoved if it has left meanwhile. Directories only look like members.
func (e *election) lookAtHead(
	ctx context.Context, use *zkconn.Conn, members []seqname.Name,
) (reading, error) {
	for _, m := range members {
		head, err := lookAt(use, e.lock.queue.Path(m)).Wait(ctx)
		switch {
		case err == nil:
			head.Kind, head.Holding = kindBy(m.Kind), true
			return head, nil
		case errors.Is(err, zk.ErrNoNode):
			return reading{}, observe.ErrMoved
		case !errors.Is(err, errDirectory):
			return reading{}, err
		}
	}
	return reading{}, nil
}

// Leaders is LeaderSelector.Leaders.
func (e *election) Leaders(ctx context.Context) iter.Seq2[Participant, error] {
	return func(yield func(Participant, error) bool) {
		if err := usable("leaders of", e.where(), ctx); err != nil {
			yield(Participant{}, err)
			return
		}
		use := zkconn.Use(e.lock.conn, e.lock.config)
		defer use.Release()
		told, last := false, reading{}
		err := e.lock.queue.Observed().FollowHead(ctx, use, func(
			ctx context.Context, members []seqname.Name, _ bool,
		) (more bool, err error) {
			leader, err := e.lookAtHead(ctx, use, members)
			if err != nil || told && leader.isSame(last) {
				return true, err
			}
			told, last = true, leader
			return yield(leader.Participant, nil), nil
		})
		if err != nil && ctx.Err() == nil {
			yield(Participant{}, wrapAsked("leaders of", e.lock.path, err))
		}
	}
}
