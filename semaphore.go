package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/leases"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/zkpath"
	"github.com/zkrecipes/recipes/internal/znode"
)

// Below a semaphore's path, and what Curator calls the znodes there.
const (
	locksDir  = observe.GateDir
	leasesDir = observe.LeasesDir
	leaseName = observe.LeaseName
)

// InterProcessSemaphoreV2 is Curator's counting semaphore across processes. Use it if up
// to a maximum of holders may work at a time. It grants leases in the order in which they
// were asked for; several at once are granted together while others wait, so that two
// callers cannot starve each other (in Curator they can). A lease belongs to no owner:
// any caller that has it may release it. All values should agree on the maximum.
type InterProcessSemaphoreV2 struct {
	conn     Conn
	path     string
	config   zkconn.Config
	reporter *reporter

	fixedMax  int    // 0: the maximum is shared
	countPath string // of the znode with the shared one

	gate   *seqnode.Queue // the process at its head may wait for room among the leases
	leases *seqnode.Queue
}

// NewInterProcessSemaphoreV2 returns a semaphore with a maximum of at least 1.
func NewInterProcessSemaphoreV2(
	conn Conn, path string, maxLeases int, opts ...Option,
) (*InterProcessSemaphoreV2, error) {
	const op = "NewInterProcessSemaphoreV2"
	s, err := newSemaphore(conn, path, opts)
	if err != nil {
		return nil, refuse(op, path, err)
	}
	if maxLeases < 1 {
		return nil, wrap(op, path, fmt.Errorf("maxLeases: %d is less than 1", maxLeases))
	}
	s.fixedMax = maxLeases
	return s, nil
}

// NewInterProcessSemaphoreV2Shared returns the semaphore at path with the maximum that
// the znode countPath holds ([SetSharedCount], or Curator's SharedCount). A higher one
// wakes waiters, a lower one takes no lease away.
func NewInterProcessSemaphoreV2Shared(
	conn Conn, path, countPath string, opts ...Option,
) (*InterProcessSemaphoreV2, error) {
	const op = "NewInterProcessSemaphoreV2Shared"
	s, err := newSemaphore(conn, path, opts)
	if err != nil {
		return nil, refuse(op, path, err)
	}
	if err := zkpath.Check(countPath); err != nil {
		return nil, wrap(op, path, fmt.Errorf("countPath: %w", err))
	}
	s.countPath = countPath
	return s, nil
}

func newSemaphore(
	conn Conn, path string, opts []Option,
) (*InterProcessSemaphoreV2, error) {
	settings, err := build(conn, path, opts)
	if err != nil {
		return nil, err
	}
	switch {
	case settings.caching != nil:
		return nil, errors.New("WithCaching: semaphores do not cache queue entries")
	case len(settings.names) > 0:
		return nil, errors.New("WithNames: semaphores count only their own leases")
	}
	settings.lint = settings.newLint("semaphore", path)
	// For the leases the rule matters only if the maximum is 1: see enterLeases.
	queue := func(dir, kind string) *seqnode.Queue {
		return settings.queue(zkpath.Join(path, dir), kind, []string{kind}, everybody)
	}
	// The znode at the gate is held, too, once Enter returns it. But it is no lease, so
	// the terms of a lease do not hold for it.
	gate := queue(locksDir, mutexName)
	gate.LossMargin, gate.MaxHold = 0, 0
	return &InterProcessSemaphoreV2{
		conn: conn, path: path, config: settings.sessionConfig(conn),
		reporter: &reporter{
			recipe: "semaphore", path: path, conn: conn,
			observer: settings.lockObserver(),
		},
		gate:   gate,
		leases: queue(leasesDir, leaseName),
	}, nil
}

// where is the semaphore's path, "" of a nil or a zero one.
func (s *InterProcessSemaphoreV2) where() string {
	if s == nil {
		return ""
	}
	return s.path
}

// Acquire waits for a lease. It ends as InterProcessLock.Acquire does.
func (s *InterProcessSemaphoreV2) Acquire(ctx context.Context) (*Lease, error) {
	leases, err := s.AcquireN(ctx, 1)
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// AcquireN waits for n leases, 1 to 10,000, all or nothing. An n above a fixed maximum is
// an error; above a shared one, it waits outside the queue.
func (s *InterProcessSemaphoreV2) AcquireN(ctx context.Context, n int) ([]*Lease, error) {
	return s.acquireWithin(ctx, n, bound{}, nil)
}

// AcquireTimeout is AcquireN that waits at most timeout. It returns (nil, nil) if the
// time ran out while too few leases were free or others were ahead, and ErrUnavailable as
// InterProcessLock.AcquireTimeout does. A timeout of 0 or less does not wait for leases
// to be returned, and at most a second for ZooKeeper and for others that are being
// granted leases.
func (s *InterProcessSemaphoreV2) AcquireTimeout(
	ctx context.Context, n int, timeout time.Duration,
) ([]*Lease, error) {
	leases, err := s.acquireWithin(ctx, n, newBound(timeout), nil)
	_, err = heldOrBusy(err)
	return leases, err
}

// leasesAtOnce bounds how many leases one call acquires: each has a znode, which is
// created at once with the others.
const leasesAtOnce = 10_000

// acquireWithin acquires leases. The ctx of the call is also what the observer receives.
// together makes one hold of theirs, before anybody has them; nil: each is by itself.
func (s *InterProcessSemaphoreV2) acquireWithin(
	call context.Context, n int, b bound, together func(leases []*Hold) *Hold,
) (_ []*Lease, err error) {
	if err := usable("acquire", s.where(), call); err != nil {
		return nil, err
	}
	defer func() { err = wrap("acquire", s.path, err) }()
	ctx, cancel, err := b.within(call)
	if err != nil {
		return nil, err
	}
	defer cancel()
	switch {
	case n < 1:
		return nil, fmt.Errorf("n: %d is less than 1", n)
	case n > leasesAtOnce:
		return nil, fmt.Errorf("n: %d exceeds %d, the most leases in one call", n,
			leasesAtOnce)
	case s.fixedMax > 0 && n > s.fixedMax:
		return nil, fmt.Errorf("n: %d exceeds the maximum of %d leases", n, s.fixedMax)
	}
	t := newTeller(call, s.reporter)
	nodes, err := s.enter(ctx, n, b.single, &t)
	if err != nil {
		t.failed(err)
		return nil, err
	}
	return s.makeLeases(&t, nodes, together), nil
}

// makeLeases makes leases of znodes that are held. If the observer panics or ends the
// goroutine, all are released.
func (s *InterProcessSemaphoreV2) makeLeases(
	t *teller, nodes []*znode.Node, together func(leases []*Hold) *Hold,
) []*Lease {
	leases, holds := make([]*Lease, len(nodes)), make([]*Hold, len(nodes))
	grants := make([]*grant, len(nodes))
	for i, node := range nodes {
		grants[i] = new(grant).restOn(soleZnode{node}, t.reporter)
		holds[i] = &Hold{grant: grants[i]}
		leases[i] = &Lease{sem: s, hold: holds[i]}
	}
	all := holds
	if together != nil {
		all = []*Hold{together(holds)}
	}
	t.acquired(func() { endAll(all) }, grants...)
	return leases
}

// gateWithin is how long a single attempt waits at the gate for it to move: others there
// are being granted leases, or wait for them. If requests take longer than that, so does
// the wait.
const gateWithin = 100 * time.Millisecond

// enter goes through the gate and returns the leases' znodes, which are held.
func (s *InterProcessSemaphoreV2) enter(
	ctx context.Context, n int, single bool, t *teller,
) ([]*znode.Node, error) {
	use := zkconn.Use(s.conn, s.config)
	defer use.Release()
	if err := use.CheckMargin(s.leases.LossMargin); err != nil {
		return nil, err
	}
	atGate := seqnode.Request{Listener: t}
	if single {
		atGate.StallTimeout = gateWithin
	}
	var backoff zkconn.Backoff
	for {
		// While a shared maximum is below n, several leases wait here, without a znode.
		// One lease waits among the others, even while the maximum is 0.
		if s.fixedMax == 0 && n > 1 {
			if err := s.maximum(use, single).Await(ctx, use, n, single); err != nil {
				return nil, err
			}
		}
		gate, err := s.gate.Enter(ctx, use, atGate)
		if err != nil {
			return nil, err
		}
		var nodes []*znode.Node
		znode.OrWithdraw([]*znode.Node{gate}, func() {
			nodes, err = s.enterLeases(ctx, use, gate, n, single)
		})
		// ErrGone: the gate or a lease was lost, so start over. This very value: the
		// cause of ctx can be that another lock's znode is gone.
		if err != znode.ErrGone { //nolint:errorlint // see above
			return nodes, err
		}
		asked := time.Now()
		if err := use.Pause(ctx, backoff.Next()); err != nil {
			return nil, wait.Explain(use, err, wait.Place{}, asked)
		}
	}
}

// enterLeases gets the leases' znodes, from the gate. The only lease needs no count: it
// is granted once nobody is ahead; see package leases.
func (s *InterProcessSemaphoreV2) enterLeases(
	ctx context.Context, use *zkconn.Conn, gate *znode.Node, n int, single bool,
) ([]*znode.Node, error) {
	if s.fixedMax == 1 {
		node, err := s.leases.EnterThrough(
			ctx, use, gate, seqnode.Request{SingleAttempt: single})
		return []*znode.Node{node}, err
	}
	return leases.Enter(ctx, use, leases.Request{
		Spec: &s.leases.Spec, Queue: s.leases.Observed(), Gate: gate, N: n,
		Maximum: s.maximum(use, single), SingleAttempt: single,
	})
}

// maximum tells a call that acquires leases how many there may be.
func (s *InterProcessSemaphoreV2) maximum(use *zkconn.Conn, single bool) leases.Maximum {
	if s.fixedMax > 0 {
		return leases.Fixed(s.fixedMax)
	}
	return (&sharedCount{use, s.countPath, single}).read
}

// ParticipantNodes returns the full paths of the leases in use, or about to be, in the
// order in which they were asked for, as the leader has it now.
func (s *InterProcessSemaphoreV2) ParticipantNodes(
	ctx context.Context,
) ([]string, error) {
	if err := usable("participants of", s.where(), ctx); err != nil {
		return nil, err
	}
	return participantNodes(ctx, s.conn, s.config, s.leases)
}

// ReturnAll releases leases together, and returns all errors joined. A nil lease is such
// an error; the others are released all the same.
func (s *InterProcessSemaphoreV2) ReturnAll(ctx context.Context, leases []*Lease) error {
	if err := usable("release", s.where(), ctx); err != nil {
		return err
	}
	parts := make([]leaving, len(leases))
	fromLast(len(leases), func(i int) {
		switch l := leases[i]; {
		case l == nil:
			err := fmt.Errorf("lease %d is nil", i+1)
			parts[i] = leaving{path: s.path, err: err}
		case l.where() == "":
			parts[i] = leaving{err: usable("release", "", ctx)}
		default:
			parts[i] = l.release()
		}
	})
	return leaving{parts: parts}.finish(ctx, nil)
}

// A Lease is one lease of a semaphore.
type Lease struct {
	sem  *InterProcessSemaphoreV2
	hold *Hold
}

// Release returns the lease, as InterProcessLock.Release releases a lock: ErrLockLost
// means that it had been lost before. Further calls do nothing.
func (l *Lease) Release(ctx context.Context) error {
	if err := usable("release", l.where(), ctx); err != nil {
		return err
	}
	return l.release().finish(ctx, nil)
}

// release begins to release the lease, if that was not done before.
func (l *Lease) release() leaving {
	begun, ok := l.hold.end()
	if !ok {
		return leaving{}
	}
	return begun
}

// where is the semaphore's path, "" of a nil or zero value.
func (l *Lease) where() string {
	if l == nil {
		return ""
	}
	return l.sem.where()
}

// Data returns what the lease's znode holds, by default its process; see [WithData].
func (l *Lease) Data(ctx context.Context) ([]byte, error) {
	if err := usable("data of a lease", l.where(), ctx); err != nil {
		return nil, err
	}
	use := zkconn.Use(l.sem.conn, l.sem.config)
	defer use.Release()
	data, err := calls.Call(ctx, use, func() ([]byte, error) {
		data, _, err := use.Get(l.hold.path())
		return data, err
	})
	return data, wrapAsked("data of", l.hold.path(), err)
}

// Hold returns the lease as a hold, always the same, for Context and Multi. Its Release
// is the lease's, but returns ErrNotOwner if released before.
func (l *Lease) Hold() *Hold {
	if l == nil || l.hold == nil {
		return new(Hold)
	}
	return l.hold
}

// NodeName returns the name of the lease's znode, without the path.
func (l *Lease) NodeName() string {
	_, name := zkpath.Split(l.Hold().Path())
	return name
}

// FencingToken is Hold.FencingToken. Leases acquired together may share it.
func (l *Lease) FencingToken() int64 { return l.Hold().FencingToken() }

// Lost is Hold.Lost.
func (l *Lease) Lost() <-chan struct{} { return l.Hold().Lost() }

// Err is Hold.Err.
func (l *Lease) Err() error { return l.Hold().Err() }
