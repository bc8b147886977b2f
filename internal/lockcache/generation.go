package lockcache

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
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
	watched   bool        // since it is held, a list has told who stands behind
	handovers int         // how often it was while others waited, or may have
	idleness
	left leavingFuncs // set when it was given up, or over
}

// An attempt is a generation's way through the queue.
type attempt struct {
	// Done by giveUp, when nobody waits for it any more; only until it is granted.
	ctx    context.Context
	giveUp context.CancelCauseFunc
	// Done when the generation's goroutine has ended; of a generation that was given up,
	// when its znode has gone or will do so in the background.
	run *zkconn.Pending[struct{}]
}

// reached is where a generation that waits stands.
type reached struct {
	queued   queuedAt         // when it joined the queue last
	position seqnode.Position // by its last list; none where it may be its turn
}

// The idleness of a generation without users.
type idleness struct {
	idleSince time.Time
	idle      *time.Timer // ends it if it stays idle; nil where none runs
}

// leavingFuncs is what Node.StartLeaving returns.
type leavingFuncs = func(ctx context.Context) error

// queuedAt is a znode in the queue, and how many were ahead when it was asked.
type queuedAt struct {
	node  string
	ahead int
}

var errNobodyWaits = errors.New("nobody waits for it any more")

// newGeneration begins a generation for an owner. It is called with entry.mu held.
func (e *entry) newGeneration(of *waiter) *generation {
	g := &generation{entry: e, q: of.q, policy: of.policy}
	g.ctx, g.giveUp = context.WithCancelCause(context.Background())
	g.run = zkconn.Start(e.key.conn, func() (none struct{}, err error) {
		n, err := g.q.Enter(g.ctx, e.key.conn, seqnode.Request{
			OnQueued: e.tellQueued(g), OnData: g.changed, OnDecision: g.looked,
		})
		if e.granted(g, n, err) {
			g.keepWatch()
		}
		return none, nil
	})
	return g
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
	e.reconcile()
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
		if looks > 1 && s.Pause(n.Ended(), time.Until(looked.Add(lookEvery))) != nil {
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
	queue, own := g.q.Observed().Participants(children), n.Name()
	for self, m := range queue {
		if m.Text == own {
			return g.q.Excludes.Follows(m, queue[self+1:]), left, nil
		}
	}
	return true, left, nil // it is gone, which the watch on it tells
}

func (g *generation) isContended() bool {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	return g.contended
}

// found takes note of whether somebody behind waits for the generation, or may.
func (g *generation) found(followed bool) (contended bool) {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	if !g.watched && !followed {
		g.handovers = 0 // nobody has waited meanwhile
	}
	g.watched, g.contended = true, g.contended || followed
	if g.contended {
		g.entry.reconcile()
	}
	return g.contended
}

// changed tells all who have a part in the generation, or wait for it, that somebody has
// changed the znode's data. Who does that wants something of its owners: it is not kept
// for others.
func (g *generation) changed(data []byte) {
	e := g.entry
	e.mu.Lock()
	g.closed = true
	var tell []func([]byte)
	if g.node != nil {
		for _, t := range g.node.Tenants() {
			tell = append(tell, t.(*tenant).onData)
		}
	} else if e.next == g {
		for _, w := range e.waiting {
			tell = append(tell, w.request.OnData)
		}
	}
	e.reconcile()
	e.mu.Unlock()
	for _, f := range tell {
		if f != nil {
			f(data)
		}
	}
}

// What follows is called with entry.mu held.

// room is for how many more owners, one after the other, the generation is good.
func (g *generation) room() int {
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

// isFree tells whether one more owner may be admitted now.
func (g *generation) isFree() bool {
	return (g.users == 0 || g.entry.together) && g.room() > 0
}

// isOver tells of a generation that nobody uses whether it is to be given up.
func (g *generation) isOver() bool {
	return g.closed || g.contended || time.Since(g.idleSince) >= g.policy.Idle
}

// admit makes an owner a user, who came with q. Its error is that of Share.attach.
func (g *generation) admit(q *seqnode.Queue, r seqnode.Request) (*Share, error) {
	sh := &Share{
		Node: g.node, generation: g, onData: r.OnData,
		margin: q.LossMargin, cancelExpiry: func() {},
	}
	sh.lost, sh.loseNow = context.WithCancelCause(context.Background())
	if q.MaxHold > 0 {
		sh.cancelExpiry = g.entry.key.conn.After(q.MaxHold, sh.expire)
	}
	if err := sh.attach(); err != nil {
		sh.cancelExpiry()
		return nil, err
	}
	g.users++
	return sh, nil
}

// leaveOne takes off a user. unsure: nobody else may have the lock before the znode is
// gone, or is known to be there.
func (g *generation) leaveOne(unsure bool) {
	g.closed = g.closed || unsure
	if g.users--; g.users == 0 {
		g.idleSince = time.Now()
	}
}

// leave deletes the znode.
func (g *generation) leave() {
	g.stopIdle()
	g.left = g.node.StartLeaving()
}

func (g *generation) stopIdle() {
	if g.idle != nil {
		g.idle.Stop()
		g.idle = nil
	}
}

// awaitEnd ends a generation that nobody uses once it was idle for long enough. The timer
// of one that is used again goes on: so there is one for each time that it is idle that
// long, and not for each use.
func (g *generation) awaitEnd() {
	if g.idle != nil {
		return
	}
	left := g.policy.Idle - time.Since(g.idleSince)
	g.idle = time.AfterFunc(left, func() {
		g.entry.mu.Lock()
		defer g.entry.mu.Unlock()
		g.idle = nil
		g.entry.reconcile()
	})
}
