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
// changed: it is given the participants, in order. anew: the directory was created again,
// so that a name may be another znode's than before. more tells whether the next change
// is of interest. An error is one of a request, or [ErrMoved].
type Observer func(
	ctx context.Context, members []seqname.Name, anew bool,
) (more bool, err error)

// ErrMoved says that a participant has left since it was listed: look again.
var ErrMoved = errors.New("the queue has changed since it was listed")

// Follow has tell observe the queue, now and whenever it may have changed, without a
// znode. It ends when tell wants no more, without an error; else with ctx, when the
// connection is closed, or with a permanent error. Changes that come faster than they are
// observed are one. It leaves nothing behind but the shared watch.
func (q Queue) Follow(ctx context.Context, conn *zkconn.Conn, tell Observer) error {
	return wait.Until(ctx, conn, newFollower(q, conn).telling(tell))
}

// FollowHead is Follow for one that wants to know the first participant only: what comes
// behind that one wakes nobody.
func (q Queue) FollowHead(ctx context.Context, conn *zkconn.Conn, tell Observer) error {
	f := newFollower(q, conn).telling(tell)
	f.headOnly = true
	return wait.Until(ctx, conn, f)
}

// A Reader is an [Observer] of all children of a directory, in any order. missed: what
// was read before may have changed although no watch has told.
type Reader func(
	ctx context.Context, children []string, missed bool,
) (more bool, err error)

// FollowChildren is Follow for a directory that is no queue. It also looks again when
// wake receives.
func FollowChildren(
	ctx context.Context, conn *zkconn.Conn, dir string, wake <-chan struct{}, tell Reader,
) error {
	f := newFollower(Queue{Dir: dir}, conn)
	f.tell, f.wake = tell, wake
	return wait.Until(ctx, conn, f)
}

// telling has f tell an Observer.
func (f *follower) telling(tell Observer) *follower {
	f.tell = func(
		ctx context.Context, children []string, _ bool,
	) (more bool, err error) {
		return tell(ctx, f.Participants(children), f.anew)
	}
	return f
}

// A follower waits for its caller to have seen enough of a queue. It belongs to the
// goroutine in Follow.
type follower struct {
	Queue
	conn     *zkconn.Conn
	tell     Reader
	headOnly bool
	wake     <-chan struct{} // what else to look again for; nil: nothing

	changed <-chan zk.Event // when to look again
	watched string          // the path that this is on
	// the connection was away since the last look, and is back
	reconnected <-chan struct{}
	// lagging: the server may lag behind what was seen, or something may have gone
	// unnoticed, and no sync has succeeded since.
	lagging bool

	last   []string // the children that the last list has shown
	again  bool     // they are still the same: only wake has received
	missed bool     // something may have gone unnoticed since the last look

	czxid int64 // of the directory, when it was listed and watched last
	anew  bool  // that has changed since the last look
}

func newFollower(q Queue, conn *zkconn.Conn) *follower {
	return &follower{Queue: q, conn: conn, lagging: true, missed: true}
}

// Check implements wait.Goal; free: the caller has seen enough. It retries by itself,
// with short pauses at first: how many outages there were before says nothing of this
// one.
func (f *follower) Check(ctx context.Context) (free bool, err error) {
	more := true
	err = f.conn.Retry(ctx, func() error {
		f.reconnected = f.conn.Reconnected()
		children, err := f.children(ctx)
		if err == nil && f.conn.AwaySince(f.reconnected) {
			err = ErrMoved
		}
		if f.lagging = err != nil; f.lagging {
			f.missed = true
			return err
		}
		more, err = f.tell(ctx, children, f.missed)
		f.missed = err != nil
		f.anew = f.anew && err != nil
		return err
	})
	return !more, err
}

// Wait implements wait.Goal.
func (f *follower) Wait(ctx context.Context) error {
	wake := wait.Wakers{
		Blocker: f.wake, Watch: f.changed, Path: f.watched,
		Reconnected: f.reconnected, Poll: wait.NextPoll(),
	}
	by, ev, err := wake.Sleep(ctx, f.conn)
	f.again = by == wait.BlockerEnded
	hidden := by == wait.PollDue && !f.conn.TellsReconnects() // there may have been one
	f.missed = f.missed || by == wait.Reconnected || hidden || ev.Err != nil
	f.lagging = f.lagging || !f.again && by != wait.WatchFired || ev.Err != nil
	return err
}

// Commit implements wait.Goal: there is nothing to take.
func (f *follower) Commit(context.Context) error { return nil }

// children lists the directory, and sets the watch that tells of a change.
func (f *follower) children(ctx context.Context) (children []string, err error) {
	if f.again && !f.lagging && !f.missed {
		return f.last, nil
	}
	defer func() { f.last = children }() // what wake alone does not change
	if f.lagging {
		if err := f.conn.CatchUp(ctx, f.Dir); err != nil {
			return nil, err
		}
	}
	if !f.headOnly {
		return f.listAndWatch(ctx)
	}
	children, err = f.list(ctx, f.conn, false)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return nil, err
	}
	members := f.Participants(children)
	if len(members) == 0 {
		children, err = f.listAndWatch(ctx)
		members = f.Participants(children)
		if err != nil || len(members) == 0 {
			return children, err
		}
	}
	for i, m := range members {
		var stat *zk.Stat
		f.watched = f.Path(m)
		stat, f.changed, err = f.conn.WatchStat(ctx, f.watched)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return nil, ErrMoved
		case errors.Is(err, zk.ErrNoAuth): // to read it; the list shows that it leaves
			return f.listAndWatch(ctx)
		case err != nil || !zkconn.IsDirectory(stat):
			return texts(members[i:]), err
		}
	}
	_, err = f.listAndWatch(ctx) // all are directories
	return nil, err
}

func texts(members []seqname.Name) (names []string) {
	for _, m := range members {
		names = append(names, m.Text)
	}
	return names
}

// listAndWatch lists the directory and watches it. If that is missing it watches the
// nearest of its parents that is there, for somebody who creates the next: an observer
// creates no znode.
func (f *follower) listAndWatch(ctx context.Context) ([]string, error) {
	missing := "" // what would lead from dir to the directory
	for dir := f.Dir; ; {
		children, stat, changed, err := f.conn.WatchChildren(ctx, dir)
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
		f.anew = f.anew || f.czxid != stat.Czxid
		f.czxid = stat.Czxid
		return children, nil
	}
}
