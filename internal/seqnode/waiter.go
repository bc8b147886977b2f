package seqnode

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/usercode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A waiter is one wait for the turn of a Member's znode: it finds out what the order
// wants to know, and sleeps while others are ahead. It belongs to the goroutine in Enter,
// EnterUnder or EnterThrough.
type waiter struct {
	*Member
	request Request

	decided decided  // what it keeps of the last decision
	stall   *stall   // nil before the first sleep, and if nothing bounds the wait
	watched *watched // the one that was watched last, the blocker's or a former one's
	beyond  *beyond  // whom the last decision named, if that is worth a look
	// closed once the connection was away and is back, since the last Check
	reconnected <-chan struct{}
	// since when it waits for an answer, for errors: since it began to join the queue,
	// and from Commit on since that began
	asked time.Time

	told         bool // the Listener was called
	rests        bool // it is far from its turn: see rest in the package's words
	lookedAtLast bool // it has looked before the end of the wait: see lookAtLast
	beyondGone   bool // since the last decision the one beyond has gone, most likely
	// one ahead certainly holds the lock, or waits, as the last list has shown; see actOn
	userAhead  bool
	notLeaving seqname.Name // a single attempt's that has not left soon; see checkStall
}

// decided is what a waiter keeps of an [order.Decision].
type decided struct {
	ahead   int
	behind  seqname.Name // whom to wait for; none if it is granted
	local   *Member      // the same, if it is of this process
	first   bool         // nobody at all was ahead
	confirm bool         // the waiter's znode is to be watched now
	soon    bool         // if not now: after znode.Soon, and not only after znode.Late
}

// A stall bounds how long a waiter waits for anybody ahead to leave. A waiter sleeps
// until its blocker goes, and is not woken by others ahead that leave. So it lists the
// queue each time that the stall is due. It belongs to one waiter: it ends with its
// znode.
type stall struct {
	every time.Duration
	due   <-chan time.Time
	ahead int // how many were ahead when the queue was last looked at
}

// A watched is a participant with a watch on its znode: one whose end this process does
// not report, as those of other processes.
type watched struct {
	name        seqname.Name
	stamp       order.Stamp
	stat        *zk.Stat        // as the watch was set
	events      <-chan zk.Event // nil once the event was received
	reconnected <-chan struct{} // waiter.reconnected when it was set
}

// A beyond is the next participant in the way, past the blocker. Once it has gone, the
// blocker most likely holds the lock. Meanwhile the waiter finds out what it would have
// to ask once the blocker has gone: a list shows whether others are left, and a watch on
// the waiter's own znode that it is there. So the blocker's end grants without a request,
// and a hand-over takes one round trip instead of two.
type beyond struct {
	path string
	set  *calls.Pending[<-chan zk.Event] // sets its watch; nil before look
}

// untilThrough is wait.Until of EnterThrough: for as long as gate lasts. A gate of
// another session can be gone already.
func (w *waiter) untilThrough(ctx context.Context, gate *znode.Node) error {
	if w.node.Session() != gate.Session() {
		return znode.ErrEnded
	}
	stop := context.AfterFunc(gate.Ended(), w.node.Withdraw)
	err := wait.Until(ctx, w.conn, w)
	if !stop() && err == nil {
		return znode.ErrEnded
	}
	return err
}

// Check implements wait.Goal: it sends requests until the order can decide. It retries by
// itself, with short pauses at first: how many outages the wait has seen before says
// nothing about this one.
func (w *waiter) Check(ctx context.Context) (free bool, err error) {
	var d order.Decision
	err = w.conn.Retry(ctx, func() (err error) {
		d, err = w.decide(ctx)
		return err
	})
	if err != nil {
		return false, err
	}
	w.restOrApproach(d)
	w.beyondGone = false
	w.decided = decided{
		ahead: d.Ahead, behind: d.Behind, first: d.First, confirm: d.Confirm,
		// If the connection does not announce its close, the deletion of our znode is the
		// first sign of that, after which requests are held back (zkconn.Conn.HoldBack).
		soon: d.Useful || !w.conn.TellsClose(),
	}
	w.beyond = w.newBeyond(d.Beyond)
	if d.Local != nil {
		w.decided.local = d.Local.Driver.(*Member)
	}
	if !w.told { // once for each znode, however often the turn is decided
		w.told = true
		w.tellQueued()
	}
	// The entry that waits with this znode may not want to, now that it knows where.
	f := w.request.OnDecision
	if f != nil && !f(w.position(), w.cohort.isFollowed(w.Member)) {
		return false, wait.ErrBusy
	}
	return d.Granted, nil
}

// restOrApproach has the waiter rest, now or still, if others than its blocker have to go
// first. Otherwise a rest ends.
func (w *waiter) restOrApproach(d order.Decision) {
	rested := w.rests
	w.rests = false
	if !d.Granted && !d.Next {
		w.rests = w.node.Rest()
	}
	if rested && !w.rests {
		w.node.Approach() // the heartbeat goes on; nobody waits for the sync it may send
	}
}

func (w *waiter) tellQueued() {
	if listener := w.request.Listener; listener != nil {
		znode.OrWithdraw([]*znode.Node{w.node}, func() {
			listener.Queued(w.node.Path, w.decided.ahead)
		})
	}
}

// decide returns a decision that has no question left.
func (w *waiter) decide(ctx context.Context) (d order.Decision, err error) {
	// Before anything is asked: a reconnect in between must wake the sleep that follows.
	w.reconnected = w.conn.Reconnected()
	if err := w.useFirstList(ctx); err != nil {
		return d, err
	}
	var proof *calls.Pending[struct{}] // that the session lives; nil: it is not asked for
	for {
		// The session may have ended before the heartbeat finds that out.
		if w.conn.SessionID() != w.node.Session() {
			w.node.Lose(outcome.ErrSessionEnded)
		}
		// The number of the znode may grant the turn, if the parent znode is known to be
		// the same as before. The read that tells is under way since the create.
		if w.cohort.countsNumbers(w.Member) {
			w.conn.Incarnation(ctx, w.queue.Dir)
		}
		d = w.cohort.decide(w.Member)
		switch {
		case d.Over || w.node.Ended().Err() != nil:
			return d, znode.ErrEnded
		case d.Ask != order.Nothing: // the order needs one more fact
			// At the same time, proof is asked for. After a reconnect there is proof: the
			// handshake; and most likely it is not the waiter's turn.
			if !d.Sync {
				proof = w.approach(proof)
			}
			err = w.ask(ctx, d)
		case w.beyondGone && !d.Granted:
			// The one beyond has gone, maybe others with it. This list shows who is left,
			// so that the blocker's event alone can grant the turn.
			err = w.list(ctx, false)
		case d.Granted:
			if proof = w.approach(proof); proof == nil {
				return d, nil
			}
			// Hold judges what it shows. The turn may have gone with the znode by then.
			_, _ = proof.Wait(ctx)
			proof = nil
		default:
			return d, nil
		}
		switch {
		case ctx.Err() != nil:
			return d, outcome.Cancelled(ctx)
		case err != nil:
			return d, err
		}
	}
}

// approach ends a rest, if there is one. If a sync is due by then, that sends it, for
// proof that the session lives. It returns the sync to wait for: this one, or that of an
// earlier call; nil if there is none.
func (w *waiter) approach(
	earlier *calls.Pending[struct{}],
) (proof *calls.Pending[struct{}]) {
	if !w.rests {
		return earlier
	}
	w.rests = false
	return w.node.Approach()
}

// useFirstList reports what the list behind the create has shown.
func (w *waiter) useFirstList(ctx context.Context) error {
	first := w.firstList
	if first == nil {
		return nil
	}
	w.firstList = nil
	a, err := first.Wait(ctx)
	if err != nil {
		return err
	}
	l, err := w.cohort.report(w.queue, a)
	if err == nil {
		w.actOn(l)
	}
	return err
}

// ask finds out what a decision asks for.
func (w *waiter) ask(ctx context.Context, d order.Decision) error {
	if d.Ask == order.ConfirmOwn {
		return w.node.AwaitToken(ctx)
	}
	// If the read of the waiter's znode is under way, its answer comes first. It may be
	// all that is missing, and spares the list.
	if w.conn.InOrder() {
		if waited := w.node.AwaitConfirmation(ctx); waited {
			return nil
		}
	}
	if d.Ask == order.ReadAhead {
		return w.cohort.read(ctx, w.queue, d.Reads)
	}
	return w.list(ctx, d.Sync)
}

// list lists the queue, which also shows what became of the one beyond.
func (w *waiter) list(ctx context.Context, mayLag bool) error {
	w.beyondGone = false
	l, err := w.cohort.list(ctx, w.Member, mayLag)
	if err == nil {
		w.actOn(l)
	}
	return err
}

// actOn acts on a list: it deletes other znodes with the id of w's znode, and reports
// what should not be there, on the goroutine of the waiter. If that is not the user's
// (Request.OnDecision), the report cannot end it.
func (w *waiter) actOn(l listed) {
	w.userAhead = false
	for _, n := range l.names {
		w.node.DiscardOrphan(n.Text)
		// One that no library has named may be no participant, a cached entry may be
		// idle, and a single attempt on its way out. Any other holds the lock or waits.
		certain := znode.IsProtected(n.Text) && !mayBeIdle(n.Text)
		w.userAhead = w.userAhead || certain && w.waitsFor(n)
	}
	if l.foreign == "" {
		return
	}
	report := func() { w.queue.Lint.Report(w.queue.Dir, l.foreign) }
	if w.request.OnDecision != nil {
		_ = usercode.Contain("the log handler", report)
	} else {
		znode.OrWithdraw([]*znode.Node{w.node}, report)
	}
}

// Wait implements wait.Goal: somebody is ahead, and it sleeps until that may have
// changed.
func (w *waiter) Wait(ctx context.Context) error {
	// A single attempt waits for nobody who uses the lock. A cached entry that may be
	// idle leaves soon, since this znode is queued behind it.
	if w.request.SingleAttempt && !w.position().MayBeIdle {
		return wait.ErrBusy
	}
	w.startStall()
	// A single attempt waits so briefly that it sets no watch; others may wait on.
	if w.request.SingleAttempt && w.isBehindSingleAttempt() {
		wake := wait.Wakers{Reconnected: w.reconnected}
		if local := w.decided.local; local != nil {
			wake.Blocker = local.node.Ended().Done()
		}
		return w.sleep(ctx, wake)
	}
	w.watchSelf()
	if local := w.decided.local; local != nil {
		// The blocker is of this process: its Node reports the end, without a watch.
		return w.sleep(ctx, wait.Wakers{Blocker: local.node.Ended().Done()})
	}
	// Both watches are set at once. Only the blocker's is waited for.
	w.beyond.look(ctx, w.conn)
	switch decideAgain, err := w.watchBlocker(ctx); {
	case errors.Is(err, zk.ErrNoNode):
		// It went after the list. No watch is set, and the order can decide again.
		w.cohort.gone(w.watched.stamp, w.watched.name)
		return nil
	case err != nil || decideAgain:
		return err
	}
	wake := wait.Wakers{
		Watch: w.watched.events, Path: w.queue.Path(w.watched.name),
		Reconnected: w.reconnected, Poll: wait.NextPoll(),
	}
	w.beyond.wake(&wake)
	return w.sleep(ctx, wake)
}

// watchBlocker watches the blocker, unless a watch of an earlier Wait is still usable:
// its event may be here already, and a new watch would take a round trip to find that
// out. decideAgain: the read that sets the watch has shown what the blocker is.
func (w *waiter) watchBlocker(ctx context.Context) (decideAgain bool, err error) {
	b := w.watched
	if b != nil && b.events != nil && b.name == w.decided.behind &&
		b.reconnected == w.reconnected {
		return false, nil
	}
	known := w.knows(w.decided.behind)
	// The Stamp comes before the request: what the list showed later counts for more.
	b = &watched{
		name: w.decided.behind, stamp: w.cohort.asking(), reconnected: w.reconnected,
	}
	w.watched = b
	b.stat, b.events, err = w.conn.WatchStat(ctx, w.queue.Path(b.name))
	if err != nil {
		return false, err
	}
	if zkconn.IsDirectory(b.stat) { // it only has the name of a participant
		w.cohort.noParticipant(b.stamp, b.name)
		return true, nil
	}
	w.cohort.there(b.stamp, b.name)
	// A single attempt, and an entry that is cached, act on whether the blocker may be
	// idle, and position says so with what this read has shown.
	news := zkconn.IsOwnerless(b.stat) || !znode.IsProtected(b.name.Text)
	asks := w.request.SingleAttempt || w.request.OnDecision != nil
	return news && asks && !known, nil
}

// knows tells whether a watch has shown what a participant is.
func (w *waiter) knows(name seqname.Name) bool {
	return w.watched != nil && w.watched.name == name && w.watched.stat != nil
}

// sleep sleeps until it is worth deciding again.
func (w *waiter) sleep(ctx context.Context, wake wait.Wakers) error {
	wake.Ended, wake.WatchSelf = w.node.Ended().Done(), w.request.WatchSelf
	wake.Ending = w.ending(ctx)
	if w.stall != nil {
		wake.Stall = w.stall.due
	}
	for {
		by, ev, err := wake.Sleep(ctx, w.conn)
		if err != nil {
			return err
		}
		switch by {
		case wait.WatchFired:
			w.watched.events = nil
			if ev.Type == zk.EventNodeDeleted {
				w.cohort.gone(w.watched.stamp, w.watched.name)
			} else { // its data changed, or the watch was lost: only a list can tell
				w.cohort.doubt(w.Member)
			}
		case wait.BeyondAnswered:
			if !w.beyond.answered(ctx, &wake) {
				continue // the watch is set; nothing has changed
			}
			w.prepare()
		case wait.BeyondFired:
			w.prepare()
		case wait.SelfEnded:
			return znode.ErrEnded
		case wait.WatchSelfAsked:
			w.node.WatchSelf()
			wake.WatchSelf = nil // it stays closed
			continue
		case wait.Reconnected:
			same, err := w.isStillBehind(ctx, &wake)
			if err != nil {
				return err
			}
			if same {
				continue
			}
		case wait.EndingSoon:
			if w.lookAtLast(ctx, wake.Path) {
				continue // all is as it was
			}
		case wait.PollDue: // no event has come; is the blocker there?
			switch {
			case w.conn.Missing(ctx, wake.Path):
				w.cohort.doubt(w.Member)
			case w.rests && !w.isBehindOwn():
				// The blocker is there, so the turn has not come; see isStillBehind.
				wake.Poll = wait.NextPoll()
				continue
			}
		case wait.StallDue:
			return w.checkStall(ctx)
		}
		return nil // Check decides
	}
}

// ending returns what wakes a waiter at rest when its time is running out; nil if that is
// not known, or it has looked by then.
func (w *waiter) ending(ctx context.Context) <-chan time.Time {
	in, ok := wait.Ending(ctx)
	if !ok || !w.rests || w.lookedAtLast {
		return nil
	}
	return time.After(in)
}

// isStillBehind sets the watch on the blocker of a waiter at rest again, after a
// reconnect. If the blocker is there, it is not the waiter's turn, whatever else has
// happened. So it needs no list: after a restart of the servers, each of very many
// waiters would ask for a long one.
func (w *waiter) isStillBehind(
	ctx context.Context, wake *wait.Wakers,
) (same bool, err error) {
	watches := wake.Path != "" && !w.isBehindOwn()
	if !w.rests || w.request.OnDecision != nil || !watches {
		return false, nil
	}
	decideAgain := false
	err = w.conn.Retry(ctx, func() (err error) {
		w.reconnected = w.conn.Reconnected()
		decideAgain, err = w.watchBlocker(ctx)
		return err
	})
	switch {
	case errors.Is(err, zk.ErrNoNode): // or the server lags far behind: a list tells
		return false, nil
	case err != nil || decideAgain:
		return false, err
	}
	wake.Watch, wake.Reconnected = w.watched.events, w.reconnected
	wake.Beyond, wake.BeyondSet = nil, nil
	return true, nil
}

// isBehindOwn tells whether the blocker that is watched has turned out to be one of this
// process, which its waiters need not watch: its create was answered after they decided.
func (w *waiter) isBehindOwn() bool {
	return w.conn.Ephemeral(w.queue.Path(w.watched.name)) != nil
}

// lookAtLast finds out, shortly before the wait ends, whether ZooKeeper answers, and
// whether the blocker is there if that is at path: nobody has asked for long. Unanswered,
// it waits for the end of ctx.
func (w *waiter) lookAtLast(ctx context.Context, path string) (same bool) {
	w.lookedAtLast = true
	// Without a znode to look at one sync does, for all who wait like this.
	if path == "" || w.isBehindOwn() {
		w.conn.AskAtRest()
		return true
	}
	if err := w.conn.CatchUp(ctx, w.queue.Dir); err != nil {
		return false
	}
	if w.conn.Missing(ctx, path) {
		w.cohort.doubt(w.Member)
		return false
	}
	return true
}

// prepare is called when the one beyond has gone, most likely: a list is due. The answer
// about the waiter's znode arrives together with it.
func (w *waiter) prepare() {
	w.node.WatchSelf()
	w.beyondGone = true
}

// watchSelf begins the watch on the waiter's znode as soon as it can matter.
func (w *waiter) watchSelf() {
	if w.decided.local != nil { // when that one leaves, its number tells who is next
		w.conn.WatchIncarnation(w.queue.Dir)
	}
	if w.decided.confirm {
		w.node.WatchSelf()
	} else { // a list would show that the znode is gone, but the next can be hours away
		w.node.WatchSelfLater(w.decided.lasting())
	}
}

// lasting is how long a wait has to last before its znode is watched.
func (d *decided) lasting() time.Duration {
	if d.soon {
		return znode.Soon
	}
	return znode.Late
}

// Commit implements wait.Goal. If no list has shown the token it takes a read, which the
// watch on the waiter's znode has most likely done meanwhile.
func (w *waiter) Commit(ctx context.Context) error {
	first := w.decided.first
	w.decided.behind, w.asked = seqname.Name{}, time.Now() // nobody is ahead any more
	if err := w.node.AwaitToken(ctx); err != nil {
		return err
	}
	// The order learns of it first: once Hold returns, the holder may leave at once.
	w.cohort.held(w.Member, first)
	if err := w.node.Hold(); err != nil {
		w.cohort.notHeld(w.Member) // the session cannot be relied on just now
		return err
	}
	if w.request.OnDecision == nil { // else each owner that shares it has its own limit
		w.node.ExpireLater()
	}
	return nil
}

// position is the last decision, as users receive it.
func (w *waiter) position() Position {
	d := &w.decided
	if d.behind.Text == "" {
		return Position{Ahead: d.ahead}
	}
	p := Position{Ahead: d.ahead, Behind: w.queue.Path(d.behind), ours: d.local != nil}
	p.elsewhere = p.ours && !w.isOneWith(d.local)
	known := w.knows(d.behind)
	p.ownerless = known && zkconn.IsOwnerless(w.watched.stat)
	switch name := d.behind.Text; {
	case w.userAhead: // somebody ahead is not idle, even if the blocker is
	case mayBeIdle(name):
		p.MayBeIdle = d.behind != w.notLeaving && (!p.ours || d.local.node.IsIdle())
	default:
		p.MayBeIdle = !known && !znode.IsProtected(name)
	}
	return p
}

// mayBeIdle tells from a participant's name whether it may neither hold the lock nor wait
// for it.
func mayBeIdle(name string) bool {
	return znode.MayBeCached(name) || znode.IsSingleAttempt(name)
}

// isBehindSingleAttempt tells whether the blocker is a single attempt that may be about
// to leave. That matters to another one, and to an entry in which there may be some.
func (w *waiter) isBehindSingleAttempt() bool {
	asks := w.request.SingleAttempt || w.request.OnDecision != nil
	behind := w.decided.behind
	return asks && znode.IsSingleAttempt(behind.Text) && behind != w.notLeaving
}

// startStall begins the stall, before the first sleep that has one: also behind a single
// attempt, for as long as that may take to leave.
func (w *waiter) startStall() {
	switch {
	case w.request.StallTimeout == 0 && !w.isBehindSingleAttempt():
		w.stall = nil
	case w.stall == nil:
		every := w.request.StallTimeout + 2*time.Since(w.asked)
		w.stall = &stall{every, time.After(every), w.decided.ahead}
	}
}

// checkStall lists the queue, and returns wait.ErrBusy if nobody ahead has left since the
// last look. Otherwise the stall starts over. An entry waits on: the next decision tells
// it that the single attempt ahead is not leaving.
func (w *waiter) checkStall(ctx context.Context) error {
	l, err := w.cohort.list(ctx, w.Member, false)
	if err == nil {
		w.actOn(l)
	}
	p := w.stall
	p.due = time.After(p.every)
	if err != nil {
		return err
	}
	own, before := w.node.Name(), p.ahead
	at := slices.IndexFunc(l.names, func(n seqname.Name) bool { return n.Text == own })
	switch {
	case at < 0: // it is gone, as the next decision finds, or the list does not count
		return nil
	case at >= before && w.request.OnDecision != nil:
		w.notLeaving = w.decided.behind
		return nil
	case at >= before:
		return wait.ErrBusy
	}
	p.ahead = at
	return nil
}

// A waiter looks beyond its blocker if a round trip takes far or longer. That costs a
// read, and mostly another one of the waiter's own znode. If the servers are nearer,
// these take more time than they save.
const far = time.Millisecond

// newBeyond returns nil if there is none, or if it is not worth a look.
func (w *waiter) newBeyond(name seqname.Name) *beyond {
	if name.Text == "" || w.conn.RoundTrip() < far {
		return nil
	}
	return &beyond{path: w.queue.Path(name)}
}

// look begins to watch it. Nobody waits for the answer: the blocker may go before that.
func (b *beyond) look(ctx context.Context, conn *zkconn.Conn) {
	if b != nil {
		b.set = calls.Start(conn, func() (<-chan zk.Event, error) {
			return conn.Watch(ctx, b.path)
		})
	}
}

// wake adds to what ends a sleep: the answer about the watch, or its event once that was
// answered. If the watch could not be set, the wait is as good without it.
func (b *beyond) wake(wake *wait.Wakers) {
	if b != nil {
		wake.BeyondSet, wake.BeyondPath = b.set.Done(), b.path
	}
}

// answered is called once the answer is here. missing: there is no such znode any more.
func (b *beyond) answered(ctx context.Context, wake *wait.Wakers) (missing bool) {
	events, err := b.set.Wait(ctx)
	wake.BeyondSet, wake.Beyond = nil, events
	return errors.Is(err, zk.ErrNoNode)
}
