package observe

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// An Observer is what somebody outside of a queue does each time that it may have
// changed: it is given the participants, in order. more tells whether the next change is
// of interest. An error is one of a request, or [ErrMoved].
type Observer func(ctx context.Context, members []seqname.Name) (more bool, err error)

// ErrMoved says that a participant has left since it was listed: look again.
var ErrMoved = errors.New("the queue has changed since it was listed")

// Follow has tell observe the queue, now and whenever it may have changed, without a
// znode. It ends when tell wants no more, without an error; else with ctx, when the
// connection is closed, or with a permanent error. Changes that come faster than they are
// observed are one. It leaves nothing behind but the shared watch.
func (q Queue) Follow(ctx context.Context, s *zkconn.Conn, tell Observer) error {
	return wait.Until(ctx, s, newFollower(q, s, tell, false))
}

// FollowHead is Follow for one that wants to know the first participant only: what comes
// behind that one wakes nobody.
func (q Queue) FollowHead(ctx context.Context, s *zkconn.Conn, tell Observer) error {
	return wait.Until(ctx, s, newFollower(q, s, tell, true))
}

// A follower waits for its caller to have seen enough of a queue. It belongs to the
// goroutine in Follow.
type follower struct {
	Queue
	s        *zkconn.Conn
	tell     Observer
	headOnly bool

	changed     <-chan zk.Event // when to look again
	watched     string          // the path that this is on
	reconnected <-chan struct{} // the connection was away and is back, since the last look
	// lagging: the server may lag behind what was seen, or something may have gone
	// unnoticed, and no sync has succeeded since.
	lagging bool
}

func newFollower(
	q Queue, s *zkconn.Conn, tell Observer, headOnly bool,
) *follower {
	return &follower{
		Queue: q, s: s, tell: tell, headOnly: headOnly,
		lagging: true,
	}
}

// Check implements wait.Goal; free: the caller has seen enough. It retries by itself,
// with short pauses at first: how many outages there were before says nothing of this
// one.
func (f *follower) Check(ctx context.Context) (free bool, err error) {
	more := true
	err = f.s.Retry(ctx, func() error {
		f.reconnected = f.s.Reconnected()
		members, err := f.members(ctx)
		if err == nil && f.s.AwaySince(f.reconnected) {
			err = ErrMoved
		}
		if f.lagging = err != nil; f.lagging {
			return err
		}
		more, err = f.tell(ctx, members)
		return err
	})
	return !more, err
}

// Wait implements wait.Goal.
func (f *follower) Wait(ctx context.Context) (free bool, err error) {
	wake := wait.Wakers{
		Watch: f.changed, Path: f.watched, Reconnected: f.reconnected,
		Poll: wait.NextPoll(),
	}
	by, ev, err := wake.Sleep(ctx, f.s)
	if errors.Is(ev.Err, zk.ErrClosing) {
		f.s.ConnClosed()
	}
	f.lagging = f.lagging || by != wait.WatchFired || ev.Err != nil
	return false, err
}

// Commit implements wait.Goal: there is nothing to take.
func (f *follower) Commit(context.Context) error { return nil }

// members lists the participants, and sets the watch that tells of a change.
func (f *follower) members(ctx context.Context) ([]seqname.Name, error) {
	if f.lagging {
		if err := f.s.CatchUp(ctx, f.Dir); err != nil {
			return nil, err
		}
	}
	if !f.headOnly {
		return f.listAndWatch(ctx)
	}
	children, err := f.list(ctx, f.s, false)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	members := f.Participants(children)
	if len(members) == 0 {
		members, err = f.listAndWatch(ctx)
		if err != nil || len(members) == 0 {
			return members, err
		}
	}
	for i, m := range members {
		var stat *zk.Stat
		f.watched = f.Path(m)
		stat, f.changed, err = f.s.WatchStat(ctx, f.watched)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil, ErrMoved
		case err != nil || !zkconn.IsDirectory(stat):
			return members[i:], err
		}
	}
	_, err = f.listAndWatch(ctx) // all are directories
	return nil, err
}

// listAndWatch lists the participants and watches the directory. If that is missing it
// watches the nearest of its parents that is there, for somebody who creates the next: an
// observer creates no znode.
func (f *follower) listAndWatch(ctx context.Context) ([]seqname.Name, error) {
	missing := "" // what would lead from dir to the directory
	for dir := f.Dir; ; {
		children, _, changed, err := f.s.WatchChildren(ctx, dir)
		switch {
		case errors.Is(err, zk.ErrNoNode) && dir != "/":
			dir, missing = zkpath.Split(dir)
			continue
		case err != nil:
			return nil, err
		case slices.Contains(children, missing):
			return nil, ErrMoved // it was created meanwhile
		}
		f.changed, f.watched = changed, dir
		if missing != "" {
			return nil, nil
		}
		return f.Participants(children), nil
	}
}
