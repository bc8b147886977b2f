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
	if settings.keep != nil {
		return nil, errors.New(
			"WithCaching: a candidate whose term has ended goes to the tail of the queue",
		)
	}
	settings.look = settings.lookout(recipe, path)
	queue := settings.queue(path, kind, []string{kind}, everybody)
	return &election{
		lock:      newReentrant(conn, settings, recipe, queue, through(queue, nil)),
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

// elect joins the queue and waits until the candidate leads.
func (e *election) elect(ctx context.Context) (*Hold, error) {
	term, err := e.lock.acquireAs(ctx, e.candidate, bound{})
	if err != nil {
		return nil, err
	}
	term.releaser = termReleaser{e.lock.path}
	return term, nil
}

// A termReleaser is the releaser of a term, which the election alone ends.
type termReleaser struct{ path string }

func (termReleaser) left() bool { return true }

func (termReleaser) shares() []perLock { return nil } // nobody else is the candidate

func (r termReleaser) beginRelease(
	context.Context,
) (finish func(context.Context) error) {
	return func(context.Context) error { return wrap("release", r.path, errTerm) }
}

func (r termReleaser) release(ctx context.Context) error {
	return releaseOne(ctx, r.beginRelease)
}

var errTerm = fmt.Errorf("%w: a term belongs to its election; to end it, return from "+
	"lead, or call LeaderLatch.Close", ErrNotOwner)

// stepDown ends a term, and waits for that as Release does: ErrLockLost says that it had
// ended before, and ErrNotOwner that there was none.
func (e *election) stepDown(ctx context.Context) error {
	return e.lock.releaseAs(ctx, e.candidate)
}

// Participants returns all candidates in queue order, the leader first, with Holding set.
// It sends a read for each, and omits those that leave.
func (e *election) Participants(ctx context.Context) ([]Participant, error) {
	if err := usable("participants of", e.where(), ctx); err != nil {
		return nil, err
	}
	return e.lock.Participants(ctx)
}

// Leader returns the leader according to the znodes at this moment, with the data of its
// znode, which names it ([WithData]); false if there is no candidate. A znode that belongs
// to no session leads until somebody deletes it: its Session is 0. It sends requests
// each time: for the list and that one znode. Use it to route requests; it proves
// nothing: the leader may not know yet, or may just have lost contact. Its own Hold and
// token decide what it may do.
func (e *election) Leader(ctx context.Context) (Participant, bool, error) {
	if err := usable("leader of", e.where(), ctx); err != nil {
		return Participant{}, false, err
	}
	s := zkconn.Use(e.lock.conn, e.lock.config)
	defer s.Release()
	for {
		members, err := e.lock.queue.Observed().Members(ctx, s)
		if err != nil {
			return Participant{}, false, wrap("leader of", e.lock.path, err)
		}
		leader, err := e.lookAtHead(ctx, s, members)
		switch {
		case err == nil:
			return leader, leader.Node != "", nil
		case !errors.Is(err, observe.ErrMoved):
			return Participant{}, false, wrap("leader of", e.lock.path, err)
		}
	}
}

// lookAtHead returns the first of the members, the zero Participant where there is none,
// and observe.ErrMoved where it has left meanwhile. Directories only look like members.
func (e *election) lookAtHead(
	ctx context.Context, s *zkconn.Conn, members []seqname.Name,
) (Participant, error) {
	for _, m := range members {
		head, err := lookAt(s, e.lock.queue.Path(m)).Wait(ctx)
		switch {
		case err == nil:
			head.Kind, head.Holding = kindBy(m.Kind), true
			return head.Participant, nil
		case errors.Is(err, zk.ErrNoNode):
			return Participant{}, observe.ErrMoved
		case !errors.Is(err, errDirectory):
			return Participant{}, err
		}
	}
	return Participant{}, nil
}

// Leaders yields the current leader, as Leader returns it, and again each time that
// another candidate leads or its znode's data changes; while nobody leads, the zero
// Participant, whose Node is "". Changes that come faster than they can be read are
// merged: the last value is eventually true, but not every leader is seen. A leader that
// steps down while others wait is followed directly by the next. It watches only the
// leader's znode, so candidates behind it wake nobody; a change costs three requests.
// Otherwise the loop behaves as that of [InterProcessMutex.WatchParticipants].
func (e *election) Leaders(ctx context.Context) iter.Seq2[Participant, error] {
	return func(yield func(Participant, error) bool) {
		if err := usable("leaders of", e.where(), ctx); err != nil {
			yield(Participant{}, err)
			return
		}
		s := zkconn.Use(e.lock.conn, e.lock.config)
		defer s.Release()
		told, last := false, Participant{}
		err := e.lock.queue.Observed().FollowHead(ctx, s, func(
			ctx context.Context, members []seqname.Name,
		) (more bool, err error) {
			leader, err := e.lookAtHead(ctx, s, members)
			if err != nil || told && leader.isSame(last) {
				return true, err
			}
			told, last = true, leader
			return yield(leader, nil), nil
		})
		if err != nil && ctx.Err() == nil {
			yield(Participant{}, wrap("leaders of", e.lock.path, err))
		}
	}
}
