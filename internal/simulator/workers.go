package simulator

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/recipes"
)

// A gate is what a process passes before each of its steps.
type gate struct {
	mu     sync.Mutex    // guards closed
	closed chan struct{} // nil while the gate is open; closed when it opens
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed != nil
}

// pass waits until the gate is open, or everything ends.
func (g *gate) pass(ctx context.Context) {
	for {
		g.mu.Lock()
		closed := g.closed
		g.mu.Unlock()
		if closed == nil {
			return
		}
		select {
		case <-closed:
		case <-ctx.Done():
			return
		}
	}
}

// A worker is a process: owners who share a client.
type worker struct {
	w    *World
	n    int
	gate gate

	// dialing holds its only token while somebody opens a session. It is no mutex:
	// whoever waits for one keeps the time in a testing/synctest bubble from passing.
	dialing chan struct{}

	mu      sync.Mutex // guards session
	session *session   // nil before the first, and when it was closed
}

// A session is a worker's client and the lock values made for it.
type session struct {
	client Client
	gated  *gatedConn
	conn   recipes.Conn // what the locks see of it
	opts   []recipes.Option

	mu     sync.Mutex // guards what follows
	closed bool
	values map[valueKey]*value
}

// A valueKey names a lock value that the owners of a session share.
type valueKey struct {
	lock   int // its number
	cached bool
}

func newWorker(w *World, n int) *worker {
	return &worker{w: w, n: n, dialing: make(chan struct{}, 1)}
}

func (p *worker) current() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// open returns the worker's session, which it opens where there is none. It returns nil
// when ctx is done.
func (p *worker) open(ctx context.Context) *session {
	select {
	case p.dialing <- struct{}{}:
		defer func() { <-p.dialing }()
	case <-ctx.Done():
		return nil
	}
	for ctx.Err() == nil {
		if s := p.current(); s != nil {
			return s
		}
		client, err := p.w.Dial(ctx, p.n)
		if err != nil {
			p.w.Recorder.Record(Event{
				Kind: Note, ID: ID{Worker: p.n}, Outcome: Unreachable, Text: err.Error(),
			})
			pause(ctx, p.w.Session/10)
			continue
		}
		gated := &gatedConn{client: client, ctx: p.w.ctx, gate: &p.gate}
		if p.w.Pace != nil {
			gated.pace = func(call, path string) time.Duration {
				return p.w.Pace(p.n, call, path)
			}
		}
		if p.w.Late != nil {
			gated.late = p.w.Late(p.n)
		}
		if !p.w.prepare(ctx, gated) {
			client.Close()
			return nil
		}
		p.mu.Lock()
		p.session = &session{
			client: client, gated: gated, conn: gated.asSeen(),
			values: map[valueKey]*value{}, opts: p.options(),
		}
		p.mu.Unlock()
		p.w.Recorder.Notef("worker %d has session %#x", p.n, client.SessionID())
	}
	return nil
}

// options lets the library tell who queues, and all that it does where that is wanted.
func (p *worker) options() []recipes.Option {
	return []recipes.Option{recipes.WithACL(p.w.ACL), recipes.WithObserver(func(
		ctx context.Context, e recipes.Event,
	) {
		p.w.observe(ctx, e)
		if !p.w.Verbose {
			return
		}
		text := ""
		if e.Err != nil {
			text = ": " + e.Err.Error()
		}
		p.w.Recorder.Notef(
			"worker %d: %v, %s, %d ahead, token %d%s", p.n, e.Kind, e.Node, e.Ahead,
			e.Token, text,
		)
	})}
}

// close closes the worker's client, if it has one.
func (p *worker) close() {
	p.mu.Lock()
	s := p.session
	p.session = nil
	p.mu.Unlock()
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	p.w.Recorder.Record(Event{
		Kind: Closing, ID: ID{Worker: p.n}, Session: s.client.SessionID(),
	})
	if _, bare := s.client.(Bare); bare {
		s.gated.closed.Store(true)
		p.w.Expire(s.client.SessionID()) // its holders learn of it when others may have
	}
	s.client.Close()
}

func (s *session) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// value returns the lock value for a step that the owners of a session share, or a new
// one.
func (p *worker) value(on *session, st step) (*value, error) {
	on.mu.Lock()
	defer on.mu.Unlock()
	key := valueKey{st.lock, st.cached && p.w.Locks[st.lock].keepsPlaces()}
	fresh := st.fresh || p.w.Locks[st.lock].IsElection()
	if p.w.Mixed && key.cached && st.number%2 == 0 {
		fresh = true
	}
	if v := on.values[key]; v != nil && !fresh {
		return v, nil
	}
	opts := slices.Clone(on.opts)
	bounds := p.w.bounds(p.n, st.lock)
	if p.w.Mixed {
		bounds = p.w.boundsOfStep(p.n, st.number)
	}
	opts = append(opts, bounds.options()...)
	if key.cached {
		opts = append(opts, p.w.keeping(p.n, st.lock))
	}
	v, err := newValue(on.conn, p.w.Locks[st.lock], opts...)
	if err != nil {
		return nil, err
	}
	v.cached, v.margin = key.cached, bounds.margin
	if v.lock.Recipe == PersistentNode {
		v.margin = 0
	}
	// So that both kinds of locks turn up, those that watch their own znode from the
	// start and those that do not.
	if !fresh {
		v.makeRevocable()
		on.values[key] = v
	}
	return v, nil
}

// An owner is one of a worker's, on a goroutine of its own.
type owner struct {
	p   *worker
	n   int
	ctx context.Context // carries the owner, except for number 0, which is its goroutine
}

func newOwner(p *worker, n int) *owner {
	ctx := p.w.ctx
	if n > 0 {
		ctx = recipes.WithOwner(ctx)
	}
	return &owner{p: p, n: n, ctx: ctx}
}

// run takes step after step until Finish.
func (o *owner) run() {
	w := o.p.w
	for n := 0; !isClosed(w.stopping) && w.ctx.Err() == nil; n++ {
		s := newStep(w.Config, o.p.n, o.n, n)
		o.rest(s.think)
		o.do(s)
	}
}

// holdAlways holds a lock for long, again and again until Finish.
func (o *owner) holdAlways(lock int) {
	w := o.p.w
	for n := 0; !isClosed(w.stopping) && w.ctx.Err() == nil; n++ {
		hold := w.HoldFor + w.dice(o.p.n, o.n, n).upTo(w.HoldFor)
		o.do(step{number: n, lock: lock, hold: hold, writes: 1})
		o.rest(w.Session / 20)
	}
}

// pass waits until the process runs.
func (o *owner) pass() {
	o.p.gate.pass(o.ctx)
	pause(o.ctx, o.lead())
}

// lead is what an owner waits at the least when others may go on at the same moment: a
// seed shall give the same order each time.
func (o *owner) lead() time.Duration {
	return time.Duration((o.p.n-o.p.w.First)*(o.p.w.Owners+1)+o.n) * time.Microsecond
}

// do takes one step. It reports whether the lock was held.
func (o *owner) do(s step) (held bool) {
	on := o.p.open(o.ctx)
	if on == nil {
		return false
	}
	o.pass()
	v, err := o.p.value(on, s)
	if err != nil {
		o.unexpected("make", err)
		return false
	}
	ctx, end := context.WithCancel(o.ctx)
	defer end() // what this step has tied to it must not outlive it
	if v.lock.isOnce() {
		s.do, s.byHold = false, false
	}
	u := (&use{
		owner: o, step: s, on: on, v: v, holds: map[side][]*recipes.Hold{},
	}).as(ctx)
	if s.inspect || s.revoke || s.remove {
		u.inspect()
	}
	return u.perform()
}

// rest waits, but not when the owners are to end.
func (o *owner) rest(d time.Duration) { o.restUnless(d, nil, nil) }

// restUnless waits until the time is over, one of the channels has something, or the
// owners are to end.
func (o *owner) restUnless(d time.Duration, revoked, lost <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-revoked:
	case <-lost:
	case <-o.p.w.stopping:
	case <-o.ctx.Done():
	}
	pause(o.ctx, o.lead())
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (o *owner) unexpected(what string, err error) {
	o.p.w.Recorder.Record(Event{
		Kind: Note, ID: ID{Worker: o.p.n, Owner: o.n}, Outcome: Unexpected,
		Text: what + ": " + err.Error(),
	})
}
