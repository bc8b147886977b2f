package seqnode

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/usercode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A waiter is one wait for the turn of a Member's znode: it finds out what the order
// wants to know, and sleeps while there is somebody to wait for. It belongs to the
// goroutine in Enter, EnterUnder or EnterThrough.
type waiter struct {
	*Member
	request Request

	turn     turn      // what was decided last
	patience *patience // nil before the first sleep, and of a Request without
	blocker  *watched  // the one that was watched last
	beyond   *beyond   // whom the last decision named, if that is worth a look
	// closed once the connection was away and is back, since the last Check
	reconnected <-chan struct{}
	// when the question was put that has no answer yet
	asked time.Time
}

// A turn is what a waiter keeps of an [order.Decision].
type turn struct {
	ahead  int
	behind seqname.Name // none if it is granted
	local  *Member      // behind, if that is of this process
	first  bool
	watch  bool // its own znode, now
	useful bool // that watch, before long
	told   bool // the Listener was
	moved  bool // the one beyond has gone since, most likely: a list is due
}

// A watched is a participant of another process, with a watch on its znode.
type watched struct {
	name   seqname.Name
	asked  order.Question
	stat   *zk.Stat        // as the watch was set
	events <-chan zk.Event // nil once the event was received
	steady <-chan struct{} // waiter.reconnected when it was set
}

// Check implements wait.Goal: it asks until the order knows. It retries by itself, with
// short pauses at first: how many outages the wait has seen before says nothing of this
// one.
func (w *waiter) Check(ctx context.Context) (free bool, err error) {
	var d order.Decision
	var followed bool
	err = w.s.Retry(ctx, func() (err error) {
		d, followed, err = w.decide(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	told := w.turn.told
	w.turn = turn{
		ahead: d.Ahead, behind: d.Behind, first: d.First, told: true,
		watch: d.Confirm, useful: d.Useful || !w.s.TellsClose(), // see wait.Watched
	}
	w.beyond = w.newBeyond(d.Beyond)
	if d.Local != nil {
		w.turn.local = d.Local.Owner.(*Member)
	}
	if listener := w.request.Listener; !told && listener != nil {
		znode.OrWithdraw([]*znode.Node{w.node}, func() {
			listener.Queued(w.node.Path, w.turn.ahead)
		})
	}
	if f := w.request.OnDecision; f != nil && !f(w.position(), followed) {
		return false, wait.ErrBusy
	}
	return d.Granted, nil
}

// decide returns a decision that has no question left.
func (w *waiter) decide(ctx context.Context) (
	d order.Decision, followed bool, err error,
) {
	w.reconnected = w.s.Reconnected()
	if err := w.useFirstList(ctx); err != nil {
		return d, false, err
	}
	for {
		if w.s.SessionID() != w.node.Session() {
			w.node.Lose(outcome.ErrSessionEnded)
		}
		if w.cohort.countsNumbers(w.Member) {
			w.s.Incarnation(ctx, w.queue.Dir) // for an answer that is under way
		}
		d, followed = w.cohort.decide(w.Member)
		switch {
		case d.Over || w.node.Ended().Err() != nil:
			return d, false, znode.ErrEnded
		case d.Ask != order.Nothing:
			err = w.ask(ctx, d)
		case w.turn.moved && !d.Granted: // others may have left with it
			err = w.list(ctx, false)
		default:
			return d, followed, nil
		}
		switch {
		case ctx.Err() != nil:
			return d, false, outcome.Cancelled(ctx)
		case err != nil:
			return d, false, err
		}
	}
}

// useFirstList tells what the list behind the create has shown.
func (w *waiter) useFirstList(ctx context.Context) error {
	first := w.first
	if first == nil {
		return nil
	}
	w.first = nil
	a, err := first.Wait(ctx)
	if err != nil {
		return err
	}
	l, err := w.cohort.report(w.queue, a)
	if err == nil {
		w.saw(l)
	}
	return err
}

// ask finds out what a decision asks for.
func (w *waiter) ask(ctx context.Context, d order.Decision) error {
	switch {
	case d.Ask == order.ConfirmOwn:
		return w.node.AwaitToken(ctx)
	case w.s.InOrder() && w.node.IsConfirming():
		w.node.AwaitConfirmation(ctx) // which may be all that is missing
		return nil
	case d.Ask == order.ReadAhead:
		return w.cohort.read(ctx, w.queue, d.Reads)
	}
	return w.list(ctx, d.Sync)
}

// list lists the queue, which also shows what became of the one beyond.
func (w *waiter) list(ctx context.Context, sync bool) error {
	w.turn.moved = false
	l, err := w.cohort.list(ctx, w.Member, sync)
	if err == nil {
		w.saw(l)
	}
	return err
}

// saw acts on a list: it deletes what else turned up with the id of w's znode, and
// reports what should not be there, on the goroutine of the one who waits. If that is
// none of the user's (Request.OnDecision), the report cannot end it.
func (w *waiter) saw(l listed) {
	w.userAhead = false
	for _, n := range l.names {
		w.node.DiscardOrphan(n.Text)
		certain := znode.IsProtected(n.Text) && !znode.MayBeCached(n.Text)
		w.userAhead = w.userAhead || certain && w.waitsFor(n)
	}
	if l.foreign == "" {
		return
	}
	report := func() { w.queue.Lookout.Report(w.queue.Dir, l.foreign) }
	if w.request.OnDecision != nil {
		_ = usercode.Contain("the log handler", report)
	} else {
		znode.OrWithdraw([]*znode.Node{w.node}, report)
	}
}

// Wait implements wait.Goal: it waits for the blocker to go.
func (w *waiter) Wait(ctx context.Context) (free bool, err error) {
	if w.request.TryOnce && !w.position().MayBeIdle {
		return false, wait.ErrBusy
	}
	w.watchSelf()
	w.arm()
	if local := w.turn.local; local != nil { // its Node tells when it goes
		return false, w.sleep(ctx, wait.Wakers{Blocker: local.node.Ended().Done()})
	}
	w.beyond.look(ctx, w.s)
	switch told, err := w.watchBlocker(ctx); {
	case errors.Is(err, zk.ErrNoNode): // it went since the list
		w.cohort.gone(w.blocker.asked, w.blocker.name)
		return false, nil
	case err != nil || told:
		return false, err
	}
	wake := wait.Wakers{
		Watch: w.blocker.events, Path: w.queue.Path(w.blocker.name),
		Reconnected: w.reconnected, Poll: wait.NextPoll(),
	}
	w.beyond.wake(&wake)
	return false, w.sleep(ctx, wake)
}

// watchBlocker watches the blocker, unless a watch of an earlier Wait is still usable:
// its event may be here already, and a new watch would take a round trip to find that
// out. told: it has turned out what the blocker is, so it is worth deciding again.
func (w *waiter) watchBlocker(ctx context.Context) (told bool, err error) {
	b := w.blocker
	if b != nil && b.events != nil && b.name == w.turn.behind &&
		b.steady == w.reconnected {
		return false, nil
	}
	known := w.knows(w.turn.behind)
	b = &watched{name: w.turn.behind, asked: w.cohort.asking(), steady: w.reconnected}
	w.blocker = b
	b.stat, b.events, err = w.s.WatchStat(ctx, w.queue.Path(b.name))
	if err != nil {
		return false, err
	}
	if zkconn.IsDirectory(b.stat) {
		w.cohort.isDirectory(b.asked, b.name)
		return true, nil
	}
	w.cohort.there(b.asked, b.name)
	news := zkconn.IsOwnerless(b.stat) || !znode.IsProtected(b.name.Text)
	asks := w.request.TryOnce || w.request.OnDecision != nil
	return news && asks && !known, nil
}

// knows tells whether a watch has shown what a participant is.
func (w *waiter) knows(name seqname.Name) bool {
	return w.blocker != nil && w.blocker.name == name && w.blocker.stat != nil
}

// sleep sleeps until it is worth deciding again.
func (w *waiter) sleep(ctx context.Context, wake wait.Wakers) error {
	wake.Ended, wake.WatchSelf = w.node.Ended().Done(), w.request.WatchSelf
	if w.patience != nil {
		wake.Patience = w.patience.due
	}
	for {
		by, ev, err := wake.Sleep(ctx, w.s)
		if err != nil {
			return err
		}
		switch by {
		case wait.WatchFired:
			if errors.Is(ev.Err, zk.ErrClosing) {
				w.s.ConnClosed()
			}
			w.blocker.events = nil
			if ev.Type == zk.EventNodeDeleted {
				w.cohort.gone(w.blocker.asked, w.blocker.name)
			} else {
				w.cohort.doubt(w.Member)
			}
		case wait.BeyondAnswered:
			if !w.beyond.answered(ctx, &wake) {
				continue
			}
			w.prepare()
		case wait.BeyondFired:
			w.prepare()
		case wait.SelfEnded:
			return znode.ErrEnded
		case wait.WatchSelfAsked:
			w.node.WatchSelf()
			wake.WatchSelf = nil
			continue
		case wait.PollDue:
			if w.s.Missing(ctx, wake.Path) {
				w.cohort.doubt(w.Member)
			}
		case wait.PatienceOver:
			return w.stoodStill(ctx)
		}
		return nil
	}
}

// prepare is called when the one beyond has gone, most likely. The answer about the own
// znode arrives together with the list that follows.
func (w *waiter) prepare() {
	w.node.WatchSelf()
	w.turn.moved = true
}

// watchSelf begins the watch on the own znode as soon as it can matter to a waiter.
func (w *waiter) watchSelf() {
	if w.turn.local != nil { // so that its number tells who is next when it leaves
		w.s.WatchIncarnation(w.queue.Dir)
	}
	if w.turn.watch {
		w.node.WatchSelf()
	} else { // the list that will tell that the own znode is gone can be hours away
		w.node.WatchSelfLater(w.turn.lasting())
	}
}

// lasting is how long a wait has to last for its own znode to be watched.
func (t *turn) lasting() time.Duration {
	if t.useful {
		return znode.Soon
	}
	return znode.Late
}

// Commit implements wait.Goal. Where no list has told the token it takes a read, which
// the watch on the own znode has most likely made meanwhile.
func (w *waiter) Commit(ctx context.Context) error {
	first := w.turn.first
	w.turn.behind, w.asked = seqname.Name{}, time.Now()
	if err := w.node.AwaitToken(ctx); err != nil {
		return err
	}
	w.cohort.held(w.Member, first) // before Hold: whoever has it may leave at once
	if err := w.node.Hold(); err != nil {
		w.cohort.refused(w.Member)
		return err
	}
	if w.request.OnDecision == nil {
		w.node.ExpireLater()
	}
	return nil
}

// position is the last decision, as it is told.
func (w *waiter) position() Position {
	t := &w.turn
	if t.behind.Text == "" {
		return Position{Ahead: t.ahead}
	}
	p := Position{Ahead: t.ahead, Behind: w.queue.Path(t.behind), ours: t.local != nil}
	p.elsewhere = p.ours && !w.isOneWith(t.local)
	known := w.knows(t.behind)
	p.ownerless = known && zkconn.IsOwnerless(w.blocker.stat)
	switch name := t.behind.Text; {
	case w.userAhead:
	case znode.MayBeCached(name):
		p.MayBeIdle = !p.ours || t.local.node.IsIdle()
	default:
		p.MayBeIdle = !known && !znode.IsProtected(name)
	}
	return p
}

// arm begins the patience, before the first sleep.
func (w *waiter) arm() {
	if w.patience == nil && w.request.Patience > 0 {
		every := w.request.Patience + 2*time.Since(w.asked)
		w.patience = &patience{every, time.After(every), w.turn.ahead}
	}
}

// stoodStill lists the queue, and returns wait.ErrBusy if nobody ahead has left since the
// last look. Otherwise the patience starts over.
func (w *waiter) stoodStill(ctx context.Context) error {
	l, err := w.cohort.list(ctx, w.Member, false)
	if err == nil {
		w.saw(l)
	}
	p := w.patience
	p.due = time.After(p.every)
	if err != nil {
		return err
	}
	own, before := w.node.Name(), p.ahead
	at := slices.IndexFunc(l.names, func(n seqname.Name) bool { return n.Text == own })
	switch {
	case at < 0: // it is gone, as the next decision finds, or the list does not count
		return nil
	case at >= before:
		return wait.ErrBusy
	}
	p.ahead = at
	return nil
}
