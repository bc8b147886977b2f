package simulator

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zkrecipes/recipes"
)

// A latchLock makes a lock of a leader latch: to acquire is to lead, and to release is to
// close. So it is of use once. Its AcquireTimeout gives up by its ctx.
type latchLock struct {
	recipes.InterProcessLock // nil, for the interface's unexported methods
	*recipes.LeaderLatch
	term *recipes.Hold // of the goroutine that acquires and releases
}

var _ recipes.InterProcessLock = (*latchLock)(nil)

func (l *latchLock) Acquire(ctx context.Context) (err error) {
	l.term, err = l.Await(ctx)
	return err
}

func (l *latchLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, max(timeout, 0), errPatience)
	defer cancel()
	err := l.Acquire(ctx)
	if errors.Is(err, errPatience) {
		err = nil
	}
	return l.term != nil, err
}

func (l *latchLock) Release(ctx context.Context) error { return l.Close(ctx) }

func (l *latchLock) IsAcquiredInThisProcess() bool { return l.HasLeadership() }

func (l *latchLock) Hold(context.Context) *recipes.Hold { return l.term }

// nodesOf returns the znodes of candidates.
func nodesOf(all []recipes.Participant) (nodes []string) {
	for _, p := range all {
		nodes = append(nodes, p.Node)
	}
	return nodes
}

// A campaign is a use by way of a leader selector: one Run, in which the owner leads for
// as many terms as its step would re-enter a lock, and one more. Each term is an
// acquisition of its own; the one that is asked for when a term ends fails where Run ends
// instead.
type campaign struct {
	*use
	terms   int    // that are wanted yet; below 1: Run is to end
	parts   []part // the one that is asked for, or had
	last    []part // the one before, until its end is recorded; nil: there is none
	led     bool
	leading bool // lead runs
}

// errTermsOver is what lead returns when the owner has led enough.
var errTermsOver = errors.New("the owner has led enough")

// What a selector must not do.
var (
	errTwoLeads      = errors.New("lead is called while it runs")
	errNotLeading    = errors.New("lead is called without leadership")
	errEndsWithALoss = errors.New("lead's error ends Run, although there was a loss")
)

// run is a use of a leader selector. It reports whether the owner has led.
func (u *use) run() (led bool) {
	c := &campaign{use: u, terms: 1 + u.step.reentries, parts: u.parts(write, false)}
	ctx, bound := u.ctx, time.Duration(0)
	if u.step.patience != forEver {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, u.step.wait, u.step.cause)
		defer cancel()
		bound = u.step.wait + callBound
	}
	u.step.asks = false // a selector has no hold to ask for
	u.record(c.parts, Event{Kind: Called, Bound: bound})
	err := u.v.selector.Run(context.WithValue(ctx, partsKey{}, c.parts), c.lead)
	e := Event{Kind: Failed, Outcome: Cancelled, Text: err.Error()}
	switch over := errors.Is(err, errTermsOver); {
	case over && errors.Is(err, recipes.ErrLockLost) && ctx.Err() == nil:
		u.unexpected("run", errEndsWithALoss)
	case over, ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
	default:
		if e.Outcome = u.outcome(ctx, err); e.Outcome == LockLost {
			e.Outcome = Unexpected
		}
	}
	c.endLast(ctx.Err() == nil)
	u.record(c.parts, e)
	return c.led
}

// lead is one term.
func (c *campaign) lead(ctx context.Context, term *recipes.Hold) error {
	switch {
	case c.leading:
		c.unexpected("lead", errTwoLeads)
	case term.Err() != nil:
		c.unexpected("lead", errNotLeading)
	}
	c.led, c.leading = true, true
	defer func() { c.leading = false }()
	c.endLast(true)
	p := &c.parts[0]
	p.grant = grant{
		node: term.Path(), token: term.FencingToken(), of: term, hold: term,
	}
	c.p.w.Recorder.Grant(Event{
		ID: p.id, Path: p.path, Mode: p.mode, Token: p.token, Node: p.node,
		Session: c.on.client.SessionID(),
	}, p.of)
	c.pass()
	if c.terms > 0 { // else the error that was to end Run came behind a loss
		c.hold(c.parts)
	}
	if c.p.w.untold(ctx, c.parts) {
		c.unexpected("lead", errLossNotTold)
	}
	c.beginNext()
	if c.terms--; c.terms > 0 && !isClosed(c.p.w.stopping) {
		return nil
	}
	return errTermsOver
}

// beginNext records that the term is about to end, and that the next is asked for.
func (c *campaign) beginNext() {
	c.record(c.parts, Event{Kind: Releasing})
	c.last = slices.Clone(c.parts)
	c.parts[0].id.Part++ // in place: Run's ctx has them
	c.record(c.parts, Event{Kind: Called})
}

// endLast records the end of the last term. sure: Run has waited for ZooKeeper's answer.
func (c *campaign) endLast(sure bool) {
	if c.last == nil {
		return
	}
	e := Event{Kind: Released, Outcome: OK}
	switch {
	case c.last[0].hold.Err() != nil:
		e.Outcome = LockLost
	case !sure:
		e.Outcome = Cancelled
	}
	c.record(c.last, e)
	c.last = nil
}
