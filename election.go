package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
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
			"WithCaching: a candidate whose term is over goes to the tail of the queue",
		)
	}
	kinds := []string{kind}
	return &election{
		lock:      newReentrant(conn, settings, recipe, path, kind, kinds, predecessor),
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
	term, err := e.lock.acquireAs(ctx, e.candidate, limit{})
	if err != nil {
		return nil, err
	}
	term.releaser = termReleaser{e.lock.path}
	return term, nil
}

// A termReleaser is the releaser of a term, which the election alone ends.
type termReleaser struct{ path string }

func (termReleaser) left() bool { return true }

func (termReleaser) shares() []share { return nil } // nobody else is the candidate

func (r termReleaser) beginRelease(
	context.Context,
) (finish func(context.Context) error) {
	return func(context.Context) error { return wrap("release", r.path, errTerm) }
}

var errTerm = fmt.Errorf("%w: a term belongs to its election; to end it, return from "+
	"lead, or call LeaderLatch.Close", ErrNotOwner)

// stepDown ends a term, and waits for that as Release does: ErrLockLost says that it had
// ended before, and ErrNotOwner that there was none.
func (e *election) stepDown(ctx context.Context) error {
	return e.lock.releaseAs(ctx, e.candidate)
}

// Participants returns all candidates, in the order of the queue, the leader first: it is
// the one with Holding. It takes a read for each of them; those who leave meanwhile are
// not in it.
func (e *election) Participants(ctx context.Context) ([]Participant, error) {
	if err := usable("participants of", e.where(), ctx); err != nil {
		return nil, err
	}
	return e.lock.Participants(ctx)
}

// Leader returns the leader as the znodes have it just now, with the data of its znode,
// by which it is known (WithData); false where there is no candidate, so that nobody
// leads. It asks ZooKeeper each time, for the list and that one znode.
//
// It says whose turn it is. That one may not have been told yet; and one that has just
// lost touch with ZooKeeper has its znode for as long as its session lasts. So it tells
// whom to ask, and not what may be done: that is for the leader's own Hold and for its
// fencing token.
func (e *election) Leader(ctx context.Context) (Participant, bool, error) {
	if err := usable("leader of", e.where(), ctx); err != nil {
		return Participant{}, false, err
	}
	s := session.Use(e.lock.conn, e.lock.config)
	defer s.Release()
	for {
		members, err := e.lock.queue.Members(ctx, s)
		if err != nil {
			return Participant{}, false, wrap("leader of", e.lock.path, err)
		}
		leader, err := e.lookAtHead(ctx, s, members)
		switch {
		case err == nil:
			return leader, leader.Node != "", nil
		case !errors.Is(err, seqnode.ErrMoved):
			return Participant{}, false, wrap("leader of", e.lock.path, err)
		}
	}
}

// lookAtHead returns the first of the members, the zero Participant where there is none,
// and seqnode.ErrMoved where it has left meanwhile.
func (e *election) lookAtHead(
	ctx context.Context, s *session.Session, members []seqnode.Name,
) (Participant, error) {
	if len(members) == 0 {
		return Participant{}, nil
	}
	seen, err := look(ctx, s, e.lock.queue, members[:1], e.lock.queue.Rule)
	switch {
	case err != nil:
		return Participant{}, err
	case len(seen) == 0:
		return Participant{}, seqnode.ErrMoved
	}
	return seen[0].Participant, nil
}
