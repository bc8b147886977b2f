package seqnode

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/session"
)

// A stay is one znode of a place, from its create to its delete. See the package's page.
type stay struct {
	place *place
	q     *Queue // of the owner for whom it began
	// Done by giveUp, when nobody waits for it any more; only until it is granted.
	ctx    context.Context
	giveUp context.CancelCauseFunc
	// Done when the stay's goroutine has ended; of a stay that was given up, when its
	// znode has gone or will do so in the background.
	run *session.Pending[struct{}]

	// Guarded by place.mu.
	queued    standing     // where it stood when it joined the queue last
	position  position     // by its last list; none where it may be its turn
	contended bool         // somebody behind is known to wait for it; for good if held
	closed    bool         // nobody else is let in, whoever waits; for good
	node      *Node        // nil until it is granted; held then
	users     int          // how many Shares are not released
	watched   bool         // since it is held, a list has told who stands behind
	passes    int          // how often it was passed on while others waited, or may have
	idleSince time.Time    // of one without users
	idle      *time.Timer  // ends it if it stays idle; nil where none runs
	left      leavingFuncs // set when it was given up, or over
}

// leavingFuncs is what Node.StartLeaving returns.
type leavingFuncs = func(ctx context.Context) error

// A standing is a znode in the queue, and how many were ahead when it was asked.
type standing struct {
	node  string
	ahead int
}

var errNobodyWaits = errors.New("nobody waits for it any more")

// newStay begins a stay for an owner. It is called with place.mu held.
func (p *place) newStay(q *Queue) *stay {
	st := &stay{place: p, q: q}
	st.ctx, st.giveUp = context.WithCancelCause(context.Background())
	st.run = session.Start(p.key.queue.s, func() (none struct{}, err error) {
		n, err := q.Enter(st.ctx, p.key.queue.s, Request{
			OnQueued: p.tellQueued(st), OnData: st.changed, stay: st,
		})
		if p.granted(st, n, err) {
			st.keepWatch()
		}
		return none, nil
	})
	return st
}

// looked takes note of what the list of a stay that waits has shown; false: nobody wants
// to wait for that.
func (st *stay) looked(at position, followed bool) bool {
	p := st.place
	p.mu.Lock()
	defer p.mu.Unlock()
	st.position, st.contended = at, followed
	if p.coming != st {
		return true // its ctx is done
	}
	p.review()
	return p.coming == st
}

// lookEvery is how much time a held stay leaves between two looks at a directory in which
// others come and go who need not wait for it.
const lookEvery = 100 * time.Millisecond

// keepWatch is the stay's goroutine once it is held. Until somebody behind is known to
// wait it watches the directory; then there is nothing more to find out. It looks at once
// where the last change was long ago, as the first after the grant always is. It ends
// with the Node.
func (st *stay) keepWatch() {
	n, s := st.node, st.place.key.queue.s
	var looked time.Time
	for looks := 0; !st.isContended(); looks++ {
		if looks > 1 && s.Pause(n.ended, time.Until(looked.Add(lookEvery))) != nil {
			break
		}
		looked = time.Now()
		reconnected := s.Reconnected()
		var left <-chan zk.Event
		followed := true // also where it cannot be known
		err := s.Retry(n.ended, func() (err error) {
			followed, left, err = st.followed()
			return err
		})
		if n.ended.Err() != nil {
			break
		}
		if st.found(err != nil || followed) {
			break
		}
		wake := wakers{
			watch: left, path: n.q.Dir, ended: n.ended.Done(), reconnected: reconnected,
			poll: nextPoll(),
		}
		if _, ev, _ := wake.sleep(n.ended, s); errors.Is(ev.Err, zk.ErrClosing) {
			s.ConnClosed()
		}
	}
	<-n.ended.Done()
	st.place.reviewNow()
}

// followed lists the directory and watches it.
func (st *stay) followed() (followed bool, left <-chan zk.Event, err error) {
	n := st.node
	children, _, left, err := st.place.key.queue.s.WatchChildren(n.ended, n.q.Dir)
	if err != nil {
		return true, nil, err
	}
	queue := n.q.members(children)
	for self, m := range queue {
		if m.Text == n.name.Text {
			return n.followedIn(queue, self), left, nil
		}
	}
	return true, left, nil // it is gone, which the watch on it tells
}

func (st *stay) isContended() bool {
	st.place.mu.Lock()
	defer st.place.mu.Unlock()
	return st.contended
}

// found takes note of whether somebody behind waits for the stay, or may.
func (st *stay) found(followed bool) (contended bool) {
	st.place.mu.Lock()
	defer st.place.mu.Unlock()
	if !st.watched && !followed {
		st.passes = 0 // nobody has waited meanwhile
	}
	st.watched, st.contended = true, st.contended || followed
	if st.contended {
		st.place.review()
	}
	return st.contended
}

// changed tells all who have a part in the stay, or wait for it, that somebody has
// changed the znode's data. Who does that wants something of its owners: it is not kept
// for others.
func (st *stay) changed(data []byte) {
	p := st.place
	p.mu.Lock()
	st.closed = true
	var tell []func([]byte)
	if st.node != nil {
		for _, sh := range st.node.sharers() {
			tell = append(tell, sh.onData)
		}
	} else if p.coming == st {
		for _, a := range p.waiting {
			tell = append(tell, a.request.OnData)
		}
	}
	p.review()
	p.mu.Unlock()
	for _, f := range tell {
		if f != nil {
			f(data)
		}
	}
}

// What follows is called with place.mu held.

// room is for how many more owners, one after the other, the stay is good.
func (st *stay) room() int {
	const noBound = int(^uint(0) >> 1)
	switch {
	case st.closed:
		return 0
	case !st.contended:
		return noBound
	case st.place.together:
		return 0
	}
	return max(0, st.q.Keep.Passes-st.passes)
}

// isFree tells whether one more owner may be let in now.
func (st *stay) isFree() bool {
	return (st.users == 0 || st.place.together) && st.room() > 0
}

// isOver tells of a stay that nobody uses whether it is to be given up.
func (st *stay) isOver() bool {
	return st.closed || st.contended || time.Since(st.idleSince) >= st.q.Keep.Idle
}

// admit makes an owner a user, who came with q. Its error is that of attach.
func (st *stay) admit(q *Queue, r Request) (*Share, error) {
	sh := &Share{
		Node: st.node, stay: st, onData: r.OnData,
		margin: q.LossMargin, cancelExpiry: func() {},
	}
	sh.lost, sh.loseNow = context.WithCancelCause(context.Background())
	if q.MaxHold > 0 {
		sh.cancelExpiry = st.place.key.queue.s.After(q.MaxHold, sh.expire)
	}
	if err := st.node.attach(sh); err != nil {
		sh.cancelExpiry()
		return nil, err
	}
	st.users++
	return sh, nil
}

// leaveOne takes off a user. unsure: nobody else may have the lock before the znode is
// gone, or is known to be there.
func (st *stay) leaveOne(unsure bool) {
	st.closed = st.closed || unsure
	if st.users--; st.users == 0 {
		st.idleSince = time.Now()
	}
}

// leave deletes the znode.
func (st *stay) leave() {
	st.stopIdle()
	st.left = st.node.StartLeaving()
}

func (st *stay) stopIdle() {
	if st.idle != nil {
		st.idle.Stop()
		st.idle = nil
	}
}

// awaitEnd ends a stay that nobody uses once it was idle for long enough. The timer of
// one that is used again goes on: so there is one for each time that it is idle that
// long, and not for each use.
func (st *stay) awaitEnd() {
	if st.idle != nil {
		return
	}
	wait := st.q.Keep.Idle - time.Since(st.idleSince)
	st.idle = time.AfterFunc(wait, func() {
		st.place.mu.Lock()
		defer st.place.mu.Unlock()
		st.idle = nil
		st.place.review()
	})
}
