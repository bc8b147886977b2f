package simulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
)

// A use is one step under way: an owner acquires a lock, holds it and releases it.
type use struct {
	*owner
	step   step
	on     *session
	v      *value
	leases []*recipes.Lease         // what is held of a semaphore
	holds  map[side][]*recipes.Hold // what Acquire has returned, the latest last
	last   *recipes.Hold            // of holds, which was released
}

// lock is the one that is meant by a side; nil where leases are acquired one by one.
func (u *use) lock(s side) recipes.InterProcessLock {
	if u.v.semaphore == nil {
		return u.v.of(s)
	}
	if u.step.asLock {
		return u.v.asLocks[u.step.leases-1]
	}
	return nil
}

// A part is one path of what is acquired together.
type part struct {
	id    ID
	path  string
	mode  Mode
	under bool
	on    *session
	// The session of on when the observer was told that it was acquired, 0 if it was not:
	// a multi lock can get its members in different ones.
	inSession int64
	grant
}

// What the library promises for the end of a call, beyond the time that it was given.
const (
	callBound      = 250 * time.Millisecond
	tryBound       = time.Second // of all locks together
	ctxDoneRelease = time.Second // of each lock, where ctx is done before
	downgradePart  = 100         // the first part of a downgrade's read lock
)

// perform reports whether the lock was held.
func (u *use) perform() (held bool) {
	s, main := u.step, write
	if u.v.selector != nil {
		return u.run()
	}
	if u.v.lock.Recipe == ReadWriteLock && s.shared {
		main = read
	}
	if s.do && u.lock(main) != nil {
		return u.do(main)
	}
	parts := u.parts(main, false)
	if !u.acquire(main, parts, s.patience) {
		return false
	}
	count := u.reenter(main, parts)
	u.hold(parts)
	if main == read && s.upgrade {
		u.upgrade(parts)
	}
	if u.v.lock.Recipe == ReadWriteLock && main == write && s.downgrade {
		under := u.parts(read, true)
		lowered := u.acquire(read, under, forEver)
		_ = u.release(main, parts, count) // likewise
		if lowered {
			u.hold(under)
			_ = u.release(read, under, 1)
		}
		return true
	}
	_ = u.release(main, parts, count) // it is recorded
	return true
}

// side is which of a lock's two sides the part is of.
func (s part) side() side {
	if s.mode == Shared {
		return read
	}
	return write
}

// parts returns what the use is about to ask for.
func (u *use) parts(s side, under bool) []part {
	id := ID{Worker: u.p.n, Owner: u.n, Step: u.step.number}
	lock := u.v.lock
	var parts []part
	switch {
	case lock.Recipe == Semaphore:
		for range u.step.leases {
			parts = append(parts, part{
				id: id, path: lock.Paths[0], mode: Leased, on: u.on,
			})
			id.Part++
		}
	case s == read:
		if under {
			id.Part = downgradePart
		}
		parts = []part{{
			id: id, path: lock.Paths[0], mode: Shared, under: under, on: u.on,
		}}
	default:
		for _, path := range lock.Paths {
			parts = append(parts, part{
				id: id, path: path, mode: Exclusive, on: u.on,
			})
			id.Part++
		}
	}
	return parts
}

// record takes an event of each part.
func (u *use) record(parts []part, e Event) {
	for _, p := range parts {
		e.ID, e.Path = p.id, p.path
		if e.Kind == Called || e.Kind == Granted {
			e.Mode, e.Under = p.mode, p.under
		}
		u.p.w.Recorder.Record(e)
	}
}

// partsKey is what a ctx knows by which parts it asks for.
type partsKey struct{}

// observe records that a part stands in the queue, and takes note of the session in which
// one is acquired, and of the znode of each lease: of those that are a lock together
// nobody else tells it. It is for observers.
func (w *World) observe(ctx context.Context, e recipes.Event) {
	if e.Kind != recipes.EventQueued && e.Kind != recipes.EventAcquired {
		return // a loss is told on another goroutine
	}
	parts, _ := ctx.Value(partsKey{}).([]part)
	for i, p := range parts {
		switch {
		case p.path != e.Path:
		case e.Kind == recipes.EventQueued && p.mode != Leased:
			w.Recorder.Record(Event{Kind: Queued, ID: p.id, Path: p.path, Node: e.Node})
			return
		case e.Kind == recipes.EventAcquired && p.mode != Leased:
			parts[i].inSession = p.on.client.SessionID()
			return // on the goroutine of acquire, before it goes on
		case e.Kind == recipes.EventAcquired && p.node == "":
			parts[i].node, parts[i].inSession = e.Node, p.on.client.SessionID()
			return
		}
	}
}

// errPatience is the cause of a ctx that the workload cancels.
var errPatience = errors.New("the workload has cancelled this")

// causes are those of the workload. What has failed elsewhere, as in an errgroup, can
// look like an answer of ZooKeeper's to whoever does not ask the ctx first.
var causes = []error{
	errPatience, errPatience, elsewhere(zk.ErrNoNode), elsewhere(zk.ErrNoNode),
	elsewhere(zk.ErrNoAuth), elsewhere(zk.ErrNodeExists), elsewhere(zk.ErrSessionExpired),
}

func elsewhere(err error) error {
	return fmt.Errorf("%w, since elsewhere: %w", errPatience, err)
}

// acquire asks for the parts, and fills in what it got.
func (u *use) acquire(s side, parts []part, how patience) bool {
	ctx, limit, bound := u.ctx, time.Duration(-1), time.Duration(0)
	switch how {
	case once:
		limit, bound = 0, tryBound
	case timeout:
		limit, bound = u.step.wait, u.step.wait
	case canceled:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, u.step.wait, u.step.cause)
		defer cancel()
		bound = u.step.wait
	}
	if how != forEver {
		bound += callBound
	}
	u.record(parts, Event{Kind: Called, Bound: bound})
	ctx = context.WithValue(ctx, partsKey{}, parts)
	held, err := u.call(ctx, s, len(parts), limit)
	if !held {
		u.record(parts, u.failure(ctx, limit >= 0, err))
		return false
	}
	u.granted(s, parts)
	return true
}

// granted fills in what the use has got, and records it.
func (u *use) granted(s side, parts []part) {
	grants := u.v.leaseGrants(u.leases)
	if lock := u.lock(s); lock != nil {
		grants = grantsOf(u.ctx, lock, len(parts))
		for i, p := range parts {
			grants[i].node = cmp.Or(p.node, grants[i].node)
		}
	}
	session := u.on.client.SessionID()
	for i := range parts {
		parts[i].grant = grants[i]
		p := parts[i]
		u.p.w.Recorder.Grant(Event{
			ID: p.id, Path: p.path, Mode: p.mode, Under: p.under, Token: p.token,
			Node: p.node, Session: cmp.Or(p.inSession, session),
			Cached: u.v.cached, Margin: u.margin(),
		}, p.of)
	}
	u.pass()
}

// margin is for how long nobody else holds what is acquired after a loss that nobody has
// forced. Whether one was forced is not known of leases that are a lock together: the one
// that was removed need not be that of the path.
func (u *use) margin() time.Duration {
	if u.step.asLock && u.step.leases > 1 && u.v.semaphore != nil {
		return 0
	}
	return u.v.margin
}

// call makes the call to acquire; a limit below 0 is none.
func (u *use) call(
	ctx context.Context, s side, n int, limit time.Duration,
) (held bool, err error) {
	lock := u.lock(s)
	switch {
	case lock != nil && u.step.byHold:
		hold, err := acquireHold(ctx, lock, limit)
		if hold != nil {
			u.take(s, hold)
		}
		return hold != nil, err
	case lock != nil:
		return acquireWithin(ctx, lock, limit)
	case limit < 0:
		u.leases, err = u.v.semaphore.AcquireN(ctx, n)
	default:
		u.leases, err = u.v.semaphore.AcquireTimeout(ctx, n, limit)
	}
	return len(u.leases) > 0, err
}

// take goes on as the owner of a hold, whose loss does not end what it does.
func (u *use) take(s side, hold *recipes.Hold) {
	u.holds[s] = append(u.holds[s], hold)
	owned := hold.Context(u.ctx)
	ctx, end := context.WithCancelCause(context.WithoutCancel(owned))
	context.AfterFunc(u.ctx, func() { end(context.Cause(u.ctx)) })
	u.owner = u.as(ctx).owner
}

// failure is the event of a call to acquire that has got nothing.
func (u *use) failure(ctx context.Context, bounded bool, err error) Event {
	e := Event{Kind: Failed, Outcome: TimedOut}
	if err != nil {
		e.Outcome, e.Text = u.outcome(ctx, err), err.Error()
	}
	if e.Outcome == Unexpected && bounded && errors.Is(err, recipes.ErrUnavailable) {
		e.Outcome = TimedOut
	}
	// A multi lock tells of members that it had, and lost before it had the others, or
	// could not give back.
	refused := e.Outcome == Cancelled && ctx.Err() == nil
	if (e.Outcome == LockLost || refused) && u.v.lock.Recipe != MultiLock ||
		e.Outcome == NotAllowed {
		e.Outcome = Unexpected
	}
	return e
}

// outcome classifies how a call has ended. What it says must have happened: ctx is done,
// or the client was closed.
func (u *use) outcome(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, recipes.ErrUpgrade):
		return NotAllowed
	case errors.Is(err, recipes.ErrLockLost):
		return LockLost
	case errors.Is(err, zk.ErrConnectionClosed) && u.on.isClosed():
		return Closed
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return Cancelled
	case u.p.w.Refusals && errors.Is(err, zk.ErrNoAuth):
		return Cancelled
	}
	return Unexpected
}

// reenter acquires what is held again, where that is possible, and returns how often it
// is held then.
func (u *use) reenter(s side, parts []part) (count int) {
	count = 1
	if u.v.semaphore != nil || u.v.lock.Recipe == SemaphoreMutex ||
		u.v.lock.IsElection() {
		return count
	}
	for range u.step.reentries {
		u.pass()
		before := anyLost(parts)
		held, err := true, error(nil)
		if u.step.byHold {
			var again *recipes.Hold
			again, err = recipes.Acquire(u.ctx, u.v.of(s))
			if err == nil {
				first := u.holds[s][0]
				held = again != first && again.Path() == first.Path()
				u.holds[s] = append(u.holds[s], again)
			}
		} else {
			err = u.v.of(s).Acquire(u.ctx)
		}
		switch {
		case !held:
			u.unexpected("re-enter", errors.New("it is no other hold of the same znode"))
			fallthrough
		case err == nil && before:
			u.unexpected("re-enter", errors.New("a lock that was lost is held again"))
			fallthrough
		case err == nil:
			count++
		case u.outcome(u.ctx, err) != LockLost || !anyLost(parts):
			u.unexpected("re-enter", err)
		}
	}
	return count
}

func anyLost(parts []part) bool {
	for _, p := range parts {
		if isClosed(p.of.Lost()) {
			return true
		}
	}
	return false
}

// hold stays for the step's time, or until the lock is lost or asked back, and makes the
// step's writes.
func (u *use) hold(parts []part) {
	s := u.step
	var lost <-chan struct{} // never, where it is to be ignored
	if !s.ignoreLoss {
		var cancel func()
		lost, cancel = firstLost(parts)
		defer cancel()
	}
	pieces := s.writes + 1
	for i := range pieces {
		u.restUnless(s.hold/time.Duration(pieces), u.v.revoked, lost)
		u.pass()
		if !s.ignoreLoss && anyLost(parts) {
			return
		}
		if s.closeClient && i == pieces/2 {
			u.p.close()
		}
		if u.p.w.Trespass && s.trespass != none {
			u.trespass()
		}
		if i < s.writes {
			for n, p := range parts {
				u.write(p, n)
			}
		}
	}
}

// firstLost returns a channel that is closed when the first of several is lost, until
// cancel is called.
func firstLost(parts []part) (lost <-chan struct{}, cancel func()) {
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	for _, p := range parts {
		go func() {
			select {
			case <-p.of.Lost():
				stop()
			case <-over:
			}
		}()
	}
	return ctx.Done(), func() {
		close(over)
		stop()
	}
}

// write is one use of the store that the lock protects, by its token. Between the look at
// Lost and the moment at which the store gets it there may be some time, and the process
// may be stopped.
//
// An owner may ask the lock for its hold then. It is the n-th of what it acquired, and
// gets its own, lost or not, and never another's.
func (u *use) write(p part, n int) {
	if p.token == 0 || p.mode == Leased {
		return
	}
	if u.step.asks {
		lock := u.v.of(p.side())
		if p.grant = grantsOf(u.ctx, lock, len(u.v.lock.Paths))[n]; p.token == 0 {
			u.unexpected("hold", errors.New("it is not returned before it is released"))
			return
		}
	}
	guarded := u.step.guarded || u.p.w.Guarded
	if guarded && p.mode == Exclusive && p.hold != nil {
		u.guard(p)
		return
	}
	one := []part{p}
	u.record(one, Event{Kind: Writing, Token: p.token, Node: p.node})
	u.rest(u.step.lag)
	u.pass()
	e := Event{Kind: Refused, Token: p.token}
	accepted := false
	if p.mode == Exclusive {
		e.Version, accepted = u.p.w.Register.Write(p.path, p.token)
	} else {
		accepted = u.p.w.Register.Read(p.path, p.token)
	}
	if accepted {
		e.Kind = Written
	}
	u.record(one, e)
}

// upgrade tries to upgrade a read lock, which must be refused for as long as it is held.
func (u *use) upgrade(parts []part) {
	u.pass()
	before := anyLost(parts)
	held, err := u.v.plain.AcquireTimeout(u.ctx, 0)
	if held {
		_ = u.v.plain.Release(u.ctx)
	}
	if !before && !errors.Is(err, recipes.ErrUpgrade) && !anyLost(parts) {
		u.unexpected("upgrade", errors.Join(errors.New("it was not refused"), err))
	}
}

// release undoes the acquisition and its re-entries, and returns what the last call did.
func (u *use) release(s side, parts []part, count int) error {
	for range count - 1 {
		u.pass()
		if err := u.giveBack(u.ctx, s); err != nil &&
			u.outcome(u.ctx, err) != LockLost {
			u.unexpected("release a re-entry", err)
		}
	}
	ctx, cancel := context.WithCancelCause(u.ctx)
	defer cancel(nil)
	u.releasing(parts, cancel)
	err := u.giveBack(ctx, s)
	u.released(ctx, parts, err)
	if hold := u.last; hold != nil {
		if err := hold.Release(ctx); !errors.Is(err, recipes.ErrNotOwner) {
			u.unexpected("release again", fmt.Errorf("it is not refused: %w", err))
		}
	}
	return err
}

// releasing records that the parts are about to be released, with a ctx that is done by
// then if the step wants that.
func (u *use) releasing(parts []part, cancel context.CancelCauseFunc) {
	bound := time.Duration(0)
	if u.step.ctxDone {
		cancel(u.step.cause)
		bound = callBound + time.Duration(len(u.v.lock.Paths))*ctxDoneRelease
	}
	u.pass()
	u.record(parts, Event{Kind: Releasing, Bound: bound})
}

// released records how a release with ctx has ended.
func (u *use) released(ctx context.Context, parts []part, err error) {
	e := Event{Kind: Released, Outcome: u.outcome(ctx, err)}
	if err != nil {
		e.Text = err.Error()
	}
	u.record(parts, e)
}

// giveBack undoes one acquisition. By its hold anybody may.
func (u *use) giveBack(ctx context.Context, s side) error {
	held, lock := u.holds[s], u.lock(s)
	switch {
	case len(held) > 0:
		hold := held[len(held)-1]
		u.holds[s], u.last = held[:len(held)-1], hold
		released := make(chan error, 1)
		go func() { released <- hold.Release(recipes.WithOwner(ctx)) }()
		return <-released
	case lock != nil:
		return lock.Release(ctx)
	}
	return u.v.semaphore.ReturnAll(ctx, u.leases)
}

// inspect reads the queue. It may ask its head to give up, or delete the znode of
// somebody in it, as an operator might. In an outage the reading may fail, but not the
// asking.
func (u *use) inspect() {
	ctx, cancel := context.WithTimeoutCause(u.ctx, u.p.w.Session, u.step.cause)
	defer cancel()
	nodes, err := u.v.participants(ctx)
	if err != nil || len(nodes) == 0 {
		return
	}
	if u.step.remove {
		node := nodes[min(u.step.victim, len(nodes)-1)]
		u.p.w.Recorder.Record(Event{Kind: Removing, Path: u.v.lock.Paths[0], Node: node})
		if u.on.conn.Delete(node, -1) == nil {
			u.p.w.Recorder.Record(Event{
				Kind: Removed, Path: u.v.lock.Paths[0], Node: node,
			})
		}
	}
	lock := u.v.lock.Recipe
	if !u.step.revoke || lock != Mutex && lock != ReadWriteLock {
		return
	}
	err = recipes.AttemptRevoke(ctx, u.on.conn, nodes[0])
	if u.outcome(ctx, err) == Unexpected {
		u.unexpected("revoke", err)
	}
}
