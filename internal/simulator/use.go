package simulator

import (
	"context"
	"errors"
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
	leases []*recipes.Lease // what is held of a semaphore
}

// A stake is one path of what is acquired together.
type stake struct {
	id    ID
	path  string
	mode  Mode
	under bool
	grant
}

// What the library promises for the end of a call, beyond the time that it was given.
const (
	promptly      = 250 * time.Millisecond
	aTry          = time.Second // of all locks together
	hastyRelease  = time.Second // of each lock, where ctx is done before
	underTheWrite = 100         // the first part of a downgrade's read lock
)

// perform reports whether the lock was held.
func (u *use) perform() (held bool) {
	s, main := u.step, write
	if u.v.lock.Recipe == ReadWriteLock && s.shared {
		main = read
	}
	if s.do && u.v.semaphore == nil {
		return u.do(main)
	}
	stakes := u.claim(main, false)
	if !u.acquire(main, stakes, s.patience) {
		return false
	}
	count := u.reenter(main, stakes)
	u.hold(stakes)
	if main == read && s.raise {
		u.raise(stakes)
	}
	if u.v.lock.Recipe == ReadWriteLock && main == write && s.lower {
		under := u.claim(read, true)
		lowered := u.acquire(read, under, forEver)
		_ = u.release(main, stakes, count) // likewise
		if lowered {
			u.hold(under)
			_ = u.release(read, under, 1)
		}
		return true
	}
	_ = u.release(main, stakes, count) // it is recorded
	return true
}

// side is which of a lock's two sides the stake is of.
func (s stake) side() side {
	if s.mode == Shared {
		return read
	}
	return write
}

// claim returns what the use is about to ask for.
func (u *use) claim(s side, under bool) []stake {
	id := ID{Worker: u.p.n, Owner: u.n, Step: u.step.number}
	lock := u.v.lock
	var stakes []stake
	switch {
	case lock.Recipe == Semaphore:
		for range u.step.leases {
			stakes = append(stakes, stake{id: id, path: lock.Paths[0], mode: Leased})
			id.Part++
		}
	case s == read:
		if under {
			id.Part = underTheWrite
		}
		stakes = []stake{{id: id, path: lock.Paths[0], mode: Shared, under: under}}
	default:
		for _, path := range lock.Paths {
			stakes = append(stakes, stake{id: id, path: path, mode: Exclusive})
			id.Part++
		}
	}
	return stakes
}

// record takes an event of each stake.
func (u *use) record(stakes []stake, e Event) {
	for _, st := range stakes {
		e.ID, e.Path = st.id, st.path
		if e.Kind == Called || e.Kind == Granted {
			e.Mode, e.Under = st.mode, st.under
		}
		u.p.w.Recorder.Record(e)
	}
}

// errPatience is the cause of a ctx that the workload cancels.
var errPatience = errors.New("the workload has cancelled this")

// acquire asks for the stakes, and fills in what it got.
func (u *use) acquire(s side, stakes []stake, p patience) bool {
	ctx, limit, bound := u.ctx, time.Duration(-1), time.Duration(0)
	switch p {
	case once:
		limit, bound = 0, aTry
	case timeout:
		limit, bound = u.step.wait, u.step.wait
	case canceled:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, u.step.wait, errPatience)
		defer cancel()
		bound = u.step.wait
	}
	if p != forEver {
		bound += promptly
	}
	u.record(stakes, Event{Kind: Called, Bound: bound})
	held, err := u.call(ctx, s, len(stakes), limit)
	if !held {
		u.record(stakes, u.failure(ctx, limit >= 0, err))
		return false
	}
	grants := u.v.leaseGrants(u.leases)
	if u.v.semaphore == nil {
		grants = u.v.grants(u.ctx, s)
	}
	session := u.on.client.SessionID()
	for i := range stakes {
		stakes[i].grant = grants[i]
		st := stakes[i]
		u.p.w.Recorder.Grant(Event{
			ID: st.id, Path: st.path, Mode: st.mode, Under: st.under, Token: st.token, Node: st.node, Session: session,
		}, st.lost)
	}
	u.pass()
	return true
}

// call makes the call to acquire; a limit below 0 is none.
func (u *use) call(ctx context.Context, s side, n int, limit time.Duration) (held bool, err error) {
	switch {
	case u.v.semaphore == nil:
		return acquireWithin(ctx, u.v.of(s), limit)
	case limit < 0:
		u.leases, err = u.v.semaphore.AcquireN(ctx, n)
	default:
		u.leases, err = u.v.semaphore.AcquireTimeout(ctx, n, limit)
	}
	return len(u.leases) > 0, err
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
	// A multi lock tells of members that it had, and lost before it had the others.
	if e.Outcome == LockLost && u.v.lock.Recipe != MultiLock || e.Outcome == NotAllowed {
		e.Outcome = Unexpected
	}
	return e
}

// outcome classifies how a call has ended. What it says must have happened: ctx is done, or the client was closed.
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
	}
	return Unexpected
}

// reenter acquires what is held again, where that is possible, and returns how often it is held then.
func (u *use) reenter(s side, stakes []stake) (count int) {
	count = 1
	if u.v.semaphore != nil || u.v.lock.Recipe == SemaphoreMutex {
		return count
	}
	for range u.step.reentries {
		u.pass()
		before := anyLost(stakes)
		switch err := u.v.of(s).Acquire(u.ctx); {
		case err == nil && before:
			u.unexpected("re-enter", errors.New("a lock that was lost is held again"))
			fallthrough
		case err == nil:
			count++
		case u.outcome(u.ctx, err) != LockLost || !anyLost(stakes):
			u.unexpected("re-enter", err)
		}
	}
	return count
}

func anyLost(stakes []stake) bool {
	for _, st := range stakes {
		if isClosed(st.lost) {
			return true
		}
	}
	return false
}

// hold stays for the step's time, or until the lock is lost or asked back, and makes the step's writes.
func (u *use) hold(stakes []stake) {
	s := u.step
	var lost <-chan struct{} // never, to the deaf
	if !s.deaf {
		var cancel func()
		lost, cancel = firstLost(stakes)
		defer cancel()
	}
	pieces := s.writes + 1
	for i := range pieces {
		u.restUnless(s.hold/time.Duration(pieces), u.v.revoked, lost)
		u.pass()
		if !s.deaf && anyLost(stakes) {
			return
		}
		if s.hangUp && i == pieces/2 {
			u.p.close()
		}
		if u.p.w.Trespass && s.trespass != none {
			u.trespass()
		}
		if i < s.writes {
			for n, st := range stakes {
				u.write(st, n)
			}
		}
	}
}

// firstLost returns a channel that is closed when the first of several is lost, until cancel is called.
func firstLost(stakes []stake) (lost <-chan struct{}, cancel func()) {
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	for _, st := range stakes {
		go func() {
			select {
			case <-st.lost:
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

// write is one use of the store that the lock protects, by its token. Between the look at Lost and the moment at which the store
// gets it there may be some time, and the process may be stopped.
//
// An owner may ask the lock for its hold then. It is the n-th of what it acquired, and gets
// its own, lost or not, and never another's.
func (u *use) write(st stake, n int) {
	if st.token == 0 || st.mode == Leased {
		return
	}
	if u.step.asks {
		if st.grant = u.v.grants(u.ctx, st.side())[n]; st.token == 0 {
			u.unexpected("hold", errors.New("it is not returned before it is released"))
			return
		}
	}
	if u.step.guarded && st.mode == Exclusive && st.hold != nil {
		u.guard(st)
		return
	}
	one := []stake{st}
	u.record(one, Event{Kind: Writing, Token: st.token, Node: st.node})
	u.rest(u.step.lag)
	u.pass()
	e := Event{Kind: Refused, Token: st.token}
	accepted := false
	if st.mode == Exclusive {
		e.Version, accepted = u.p.w.Register.Write(st.path, st.token)
	} else {
		accepted = u.p.w.Register.Read(st.path, st.token)
	}
	if accepted {
		e.Kind = Written
	}
	u.record(one, e)
}

// raise tries to upgrade a read lock, which must be refused for as long as it is held.
func (u *use) raise(stakes []stake) {
	u.pass()
	before := anyLost(stakes)
	held, err := u.v.plain.AcquireTimeout(u.ctx, 0)
	if held {
		_ = u.v.plain.Release(u.ctx)
	}
	if !before && !errors.Is(err, recipes.ErrUpgrade) && !anyLost(stakes) {
		u.unexpected("upgrade", errors.Join(errors.New("it was not refused"), err))
	}
}

// release undoes the acquisition and its re-entries, and returns what the last call did.
func (u *use) release(s side, stakes []stake, count int) error {
	for range count - 1 {
		u.pass()
		if err := u.v.of(s).Release(u.ctx); err != nil && u.outcome(u.ctx, err) != LockLost {
			u.unexpected("release a re-entry", err)
		}
	}
	ctx, bound := u.ctx, time.Duration(0)
	if u.step.hasty {
		hasty, cancel := context.WithCancelCause(ctx)
		cancel(errPatience)
		ctx, bound = hasty, promptly+time.Duration(len(u.v.lock.Paths))*hastyRelease
	}
	u.pass()
	u.record(stakes, Event{Kind: Releasing, Bound: bound})
	var err error
	if u.v.semaphore != nil {
		err = u.v.semaphore.ReturnAll(ctx, u.leases)
	} else {
		err = u.v.of(s).Release(ctx)
	}
	e := Event{Kind: Released, Outcome: u.outcome(ctx, err)}
	if err != nil {
		e.Text = err.Error()
	}
	u.record(stakes, e)
	return err
}

// look reads the queue. It may ask its head to give up, or delete the znode of somebody in it, as an operator might. In an
// outage the reading may fail, but not the asking.
func (u *use) look() {
	ctx, cancel := context.WithTimeoutCause(u.ctx, u.p.w.Session, errPatience)
	defer cancel()
	nodes, err := u.v.participants(ctx)
	if err != nil || len(nodes) == 0 {
		return
	}
	if u.step.remove {
		node := nodes[min(u.step.victim, len(nodes)-1)]
		u.p.w.Recorder.Record(Event{Kind: Removing, Path: u.v.lock.Paths[0], Node: node})
		if u.on.conn.Delete(node, -1) == nil {
			u.p.w.Recorder.Record(Event{Kind: Removed, Path: u.v.lock.Paths[0], Node: node})
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
