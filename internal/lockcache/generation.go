package lockcache

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A generation is one znode of an entry, from its create to its delete. See the package's
// page.
type generation struct {
	// Set by newGeneration.
	entry  *entry
	q      *seqnode.Queue // of the owner for whom it began
	policy Policy         // likewise
	attempt

	// Guarded by entry.mu.
	reached
	contended bool        // somebody behind is known to wait for it; for good if held
	closed    bool        // nobody else is admitted, whoever waits; for good
	node      *znode.Node // nil until it is granted; held then
	users     int         // how many Shares are not released
	doubt                 // whether that is so still
	handovers int         // how often it was while others waited, or may have
	idleness
	left leavingFuncs // set when it was given up, or over
}

// An attempt is a generation's way through the queue.
type attempt struct {
	// Done by giveUp, when nobody waits for it any more; only until it is granted.
	ctx    context.Context
	giveUp context.CancelCauseFunc
	ranOut bool // the last that waited for it had no more time; guarded by entry.mu
	// Done when the generation's goroutine has ended; of a generation that was given up,
	// when its znode has gone or will do so in the background.
	run *calls.Pending[struct{}]
}

// reached is where a generation that waits stands.
type reached struct {
	queued   queuedAt         // when it joined the queue last
	position seqnode.Position // by its last list; none where it may be its turn
}

// A doubt is about a generation behind which nobody is known to wait: somebody has come
// or gone since the last list, or since it is held there was none. An owner that is
// admitted meanwhile may overtake a newcomer: that counts as a hand-over, and if none is
// left the next owner waits for the list.
type doubt struct {
	doubtful bool
	look     chan struct{} // has room for one who waits for that list
}

// The idleness of a generation without users.
type idleness struct {
	idleSince time.Time
	idle      *time.Timer // ends it if it stays idle; nil where none runs
}

// leavingFuncs is what Node.StartLeaving returns.
type leavingFuncs = func(ctx context.Context) error

var errNobodyWaits = errors.New("nobody waits for it any more")

// Queued implements seqnode.Listener: it tells those who wait for g.
func (g *generation) Queued(node string, ahead int) {
	e := g.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	g.queued = queuedAt{node, ahead}
	for i, w := range e.waiting {
		if e.next == g && (e.current == nil || !w.told) {
			w.tellLocked(e.positionOfLocked(i))
		}
	}
}

// looked takes note of what the list of a generation that waits has shown; false: nobody
// wants to wait for that.
func (g *generation) looked(at seqnode.Position, followed bool) bool {
	e := g.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	g.position, g.contended = at, followed
	if e.next != g {
		return true // its ctx is done
	}
	e.reconcileLocked()
	return e.next == g
}

// lookEvery is how much time a held generation leaves between two looks at a directory in
// which others come and go who need not wait for it.
const lookEvery = 100 * time.Millisecond

// keepWatch is the generation's goroutine once it is held. Until somebody behind is known
// to wait it watches the directory; then there is nothing more to find out. It looks at
// once where the last change was long ago, as the first after the grant always is. It
// ends with the Node.
func (g *generation) keepWatch() {
	n, s := g.node, g.entry.key.conn
	var looked time.Time
	for looks := 0; !g.isContended(); looks++ {
		if looks > 1 && g.pause(time.Until(looked.Add(lookEvery))) != nil {
			break
		}
		looked = time.Now()
		reconnected := s.Reconnected()
		var left <-chan zk.Event
		followed := true // also where it cannot be known
		err := s.Retry(n.Ended(), func() (err error) {
			followed, left, err = g.followed()
			return err
		})
		if n.Ended().Err() != nil {
			break
		}
		if g.found(err != nil || followed) {
			break
		}
		wake := wait.Wakers{
			Watch: left, Path: g.q.Dir, Ended: n.Ended().Done(), Reconnected: reconnected,
			Poll: wait.NextPoll(),
		}
		if _, ev, _ := wake.Sleep(n.Ended(), s); errors.Is(ev.Err, zk.ErrClosing) {
			s.ConnClosed()
		}
		g.beginDoubt()
	}
	<-n.Ended().Done()
	g.entry.reconcileNow()
}

// followed lists the directory and watches it.
func (g *generation) followed() (followed bool, left <-chan zk.Event, err error) {
	n := g.node
	children, _, left, err := g.entry.key.conn.WatchChildren(n.Ended(), g.q.Dir)
	if err != nil {
		return true, nil, err
	}
	// Among: a list of the queue has reported what should not be there.
	queue, own := g.q.Observed().Among(children), n.Name()
	for self, m := range queue {
		if m.Text == own {
			return g.q.Excludes.Follows(m, queue[self+1:]), left, nil
		}
	}
	return true, left, nil // it is gone, which the watch on it tells
}

// pause waits for d, until somebody waits for the look that follows, or until the Node
// has ended, which is an error.
func (g *generation) pause(d time.Duration) error {
	select {
	case <-g.look:
	case <-time.After(max(0, d)):
	case <-g.node.Ended().Done():
	}
	return g.entry.key.conn.Pause(g.node.Ended(), 0)
}

// beginDoubt takes note that somebody has come, or gone.
func (g *generation) beginDoubt() {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	g.doubtful = true
}

// found takes note of whether somebody behind waits for the generation, or may.
func (g *generation) found(followed bool) (contended bool) {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	if !followed {
		g.handovers = 0 // nobody has waited meanwhile
	}
	g.doubtful, g.contended = false, g.contended || followed
	g.entry.reconcileLocked()
	return g.contended
}

func (g *generation) isContended() bool {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	return g.contended
}

// DataChanged implements seqnode.Listener: it tells all who have a part in the
// generation, or wait for it. Who changes the data wants something of its owners: it is
// not kept for others.
func (g *generation) DataChanged(data []byte) {
	e := g.entry
	e.mu.Lock()
	g.closed = true
	var tell []seqnode.Listener
	if g.node != nil {
		for _, t := range g.node.Tenants() {
			tell = append(tell, t.(*tenant).listener)
		}
	} else if e.next == g {
		for _, w := range e.waiting {
			tell = append(tell, w.request.Listener)
		}
	}
	e.reconcileLocked()
	e.mu.Unlock()
	for _, listener := range tell {
		if listener != nil {
			listener.DataChanged(data)
		}
	}
}

// admitLocked makes an owner a user; nil if g is lost. The clock is asked first, since g
// may have been idle for any time, or this process suspended.
func (g *generation) admitLocked(r seqnode.Request) *Share {
	sh := &Share{
		Node: g.node, generation: g, listener: r.Listener, cancelExpiry: func() {},
	}
	sh.lost, sh.loseNow = context.WithCancelCause(context.Background())
	if g.q.MaxHold > 0 {
		sh.cancelExpiry = g.entry.key.conn.After(g.q.MaxHold, sh.expire)
	}
	if g.node.Check() != nil || !g.node.Attach((*tenant)(sh)) {
		sh.cancelExpiry()
		return nil
	}
	g.users++
	return sh
}

// roomLocked is for how many more owners, one after the other, the generation is good.
func (g *generation) roomLocked() int {
	const noBound = int(^uint(0) >> 1)
	switch {
	case g.closed:
		return 0
	case !g.contended:
		return noBound
	case g.entry.together:
		return 0
	}
	return max(0, g.policy.MaxHandovers-g.handovers)
}

// isFreeLocked tells whether one more owner may be admitted now.
func (g *generation) isFreeLocked() bool {
	return (g.users == 0 || g.entry.together) && g.roomLocked() > 0 && !g.mustLookLocked()
}

// mustLookLocked tells whether it has to be known first who stands behind.
func (g *generation) mustLookLocked() bool {
	return g.doubtful && !g.contended && g.handovers >= g.policy.MaxHandovers
}

// hurry ends the pause before the next look.
func (g *generation) hurry() {
	select {
	case g.look <- struct{}{}:
	default:
	}
}

// countsLocked tells whether an owner that is admitted now may overtake somebody.
func (g *generation) countsLocked() bool { return g.contended || g.doubtful }

// isOverLocked tells of a generation that nobody uses whether it is to be given up.
func (g *generation) isOverLocked() bool {
	return g.closed || g.contended || time.Since(g.idleSince) >= g.policy.Idle
}

// reasonLocked is why a generation is given up for which nobody waits.
func (g *generation) reasonLocked() error {
	if g.ranOut {
		return znode.ErrTimeOver
	}
	return errNobodyWaits
}

// leaveOneLocked takes off a user. unsure: nobody else may have the lock before the znode
// is gone, or is known to be there.
func (g *generation) leaveOneLocked(unsure bool) {
	g.closed = g.closed || unsure
	if g.users--; g.users == 0 {
		g.idleSince = time.Now()
	}
}

// leaveLocked deletes the znode.
func (g *generation) leaveLocked() {
	g.stopIdleLocked()
	g.left = g.node.StartLeaving()
}

// awaitEndLocked ends a generation that nobody uses once it was idle for long enough. The
// timer of one that is used again goes on: so there is one for each time that it is idle
// that long, and not for each use.
func (g *generation) awaitEndLocked() {
	if g.idle != nil {
		return
	}
	left := g.policy.Idle - time.Since(g.idleSince)
	g.idle = time.AfterFunc(left, func() {
		g.entry.mu.Lock()
		defer g.entry.mu.Unlock()
		g.idle = nil
		g.entry.reconcileLocked()
	})
}

func (g *generation) stopIdleLocked() {
	if g.idle != nil {
		g.idle.Stop()
		g.idle = nil
	}
}
