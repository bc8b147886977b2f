package seqnode

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/session"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Look is what somebody outside of a queue does each time that it may have changed: it
// is given the participants, in order. more tells whether the next change is of interest.
// An error is one of a request, or [ErrMoved].
type Look func(ctx context.Context, members []Name) (more bool, err error)

// ErrMoved says that a participant has left since it was listed: look again.
var ErrMoved = errors.New("the queue has changed since it was listed")

// Follow has look look at the queue, now and whenever it may have changed, without a
// znode. It ends when look wants no more, without an error; else with ctx, when the
// connection is closed, or with what no retry mends. Changes that come faster than they
// are looked at are one. It leaves nothing behind but the shared watch.
func (q *Queue) Follow(ctx context.Context, s *session.Session, look Look) error {
	return await(ctx, s, false, &follower{q: q, s: s, tell: look, lagging: true})
}

// FollowHead is Follow for who wants to know the first participant only: what comes
// behind that one wakes nobody.
func (q *Queue) FollowHead(ctx context.Context, s *session.Session, look Look) error {
	return await(ctx, s, false, &follower{
		q: q, s: s, tell: look, lagging: true, headOnly: true,
	})
}

// A follower waits for its caller to have seen enough of a queue. It is of the goroutine
// in Follow.
type follower struct {
	q        *Queue
	s        *session.Session
	tell     Look
	headOnly bool

	changed     <-chan zk.Event // when to look again
	watched     string          // the path that this is on
	reconnected <-chan struct{} // likewise: something may have gone unnoticed
	// the server may lag behind what was seen before: no sync has succeeded since the
	// connection was away
	lagging bool
}

// look implements aim; free: the caller has seen enough. It retries by itself, with short
// pauses at first: how many outages there were before says nothing of this one.
func (f *follower) look(ctx context.Context) (free bool, err error) {
	more := true
	err = f.s.Retry(ctx, func() error {
		f.reconnected = f.s.Reconnected()
		members, err := f.list(ctx)
		if err == nil && f.s.AwaySince(f.reconnected) {
			err = ErrMoved
		}
		if err != nil {
			f.lagging = true
			return err
		}
		more, err = f.tell(ctx, members)
		return err
	})
	return !more, err
}

// wait implements aim.
func (f *follower) wait(ctx context.Context) (free bool, err error) {
	wake := wakers{
		watch: f.changed, path: f.watched, reconnected: f.reconnected, poll: nextPoll(),
	}
	by, ev, err := wake.sleep(ctx, f.s)
	if errors.Is(ev.Err, zk.ErrClosing) {
		f.s.ConnClosed()
	}
	f.lagging = f.lagging || by != watchFired || ev.Err != nil
	return false, err
}

// take implements aim: there is nothing to take.
func (f *follower) take(context.Context) error { return nil }

// list lists the participants, and sets the watch that tells of a change.
func (f *follower) list(ctx context.Context) ([]Name, error) {
	if f.lagging {
		_, err := session.Call(ctx, f.s, func() (none struct{}, err error) {
			return none, f.q.sync(f.s)
		})
		if err != nil {
			return nil, err
		}
		f.lagging = false
	}
	if !f.headOnly {
		return f.listAndWatch(ctx)
	}
	l, err := session.Call(ctx, f.s, func() (listing, error) { return f.q.list(f.s) })
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	members := f.q.members(l.children)
	if len(members) == 0 {
		members, err = f.listAndWatch(ctx)
		if err != nil || len(members) == 0 {
			return members, err
		}
	}
	f.watched = f.q.Path(members[0])
	f.changed, err = f.s.Watch(ctx, f.watched)
	if errors.Is(err, zk.ErrNoNode) {
		err = ErrMoved
	}
	return members, err
}

// listAndWatch lists the participants and watches the directory. Where that is missing it
// watches the nearest of its parents that is there, for somebody who makes the next: no
// znode is made for who only looks.
func (f *follower) listAndWatch(ctx context.Context) ([]Name, error) {
	missing := "" // what would lead from dir to the directory
	for dir := f.q.Dir; ; {
		children, _, changed, err := f.s.WatchChildren(ctx, dir)
		switch {
		case errors.Is(err, zk.ErrNoNode) && dir != "/":
			dir, missing = zkpath.Split(dir)
			continue
		case err != nil:
			return nil, err
		case slices.Contains(children, missing):
			return nil, ErrMoved // it was made meanwhile
		}
		f.changed, f.watched = changed, dir
		if missing != "" {
			return nil, nil
		}
		return f.q.members(children), nil
	}
}
