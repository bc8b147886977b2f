package seqnode

import (
	"context"
	"time"
)

// A Share is an owner's part in a stay: the stay's znode is held for it, and maybe for
// others before it, beside it and behind it. It is safe for concurrent use.
type Share struct {
	*Node // the stay's, from which it has all that is not below

	// Set by admit.
	stay         *stay
	onData       func(data []byte) // see Request; may be nil
	margin       time.Duration     // see Queue.LossMargin
	cancelExpiry func()            // takes back expire

	// Done, with the cause, by the Node when it is lost: see attach.
	lost    context.Context
	loseNow context.CancelCauseFunc

	// Guarded by place.mu.
	released bool // or expired
	guarded  int  // transactions of this owner whose outcome is open
}

// Lost is Node.Lost for this owner alone: it stays open whatever becomes of the stay
// after the release.
func (sh *Share) Lost() context.Context { return sh.lost }

// Cause tells why the Share ended, nil if it has not.
func (sh *Share) Cause() error {
	p := sh.stay.place
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case sh.released && sh.lost.Err() != nil:
		return context.Cause(sh.lost)
	case sh.released:
		return errLeft
	}
	return sh.Node.Cause()
}

// Guard is Node.Guard. The check of a Share that was released would pass for as long as
// the place is kept: so it is refused here, and a place is not kept behind a transaction
// whose outcome is open.
func (sh *Share) Guard() (settled func(), ok bool) {
	p := sh.stay.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if sh.released {
		return nil, false
	}
	done, ok := sh.Node.Guard()
	if !ok {
		return nil, false
	}
	sh.guarded++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		sh.guarded--
		done()
	}, true
}

// Beside returns the Node for EnterBeside, nil where the Share was released. From now on
// the place is not kept: what stands beside a writer's znode is its owner's, and the next
// owner would be let in beside it.
func (sh *Share) Beside() *Node {
	p := sh.stay.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if sh.released {
		return nil
	}
	sh.stay.closed = true
	p.review()
	return sh.Node
}

// StartLeaving releases the Share. Where the place is kept, or others are in it, nothing
// is asked of ZooKeeper and left does not wait; else it is Node.StartLeaving.
func (sh *Share) StartLeaving() (left func(ctx context.Context) error) {
	st, p := sh.stay, sh.stay.place
	p.mu.Lock()
	defer p.mu.Unlock()
	sh.cancelExpiry()
	if sh.released {
		return func(context.Context) error { return errLeft }
	}
	sh.released = true
	sh.forgo()
	// Out of touch it may be lost already; who deletes it finds out.
	st.leaveOne(sh.guarded > 0 || p.key.queue.s.Unavailable())
	_ = st.node.rely() // the clock may have run out, where nobody has looked yet
	p.review()
	if p.held != st && st.users == 0 && st.left == nil {
		st.leave() // another was granted meanwhile
	}
	if st.left != nil {
		return st.left // it is told of a loss until that is done
	}
	if !st.node.detach(sh) {
		cause := st.node.Cause()
		return func(context.Context) error { return cause }
	}
	return func(context.Context) error { return nil }
}

// SessionEnded implements session.Ephemeral, for a Share with a margin: most likely its
// margin has begun, while others may still rely on the stay.
func (sh *Share) SessionEnded(cause error) { sh.end(cause) }

// expire ends the Share of an owner who has had it for as long as it may.
func (sh *Share) expire() { sh.end(ErrExpired) }

// end ends the Share of an owner who has lost it. Nobody else is let in, and once nobody
// is left the stay ends: not before the margin is over, in which this owner may still be
// busy. Others who are in it stay.
func (sh *Share) end(cause error) {
	st, p := sh.stay, sh.stay.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if sh.released || sh.lost.Err() != nil {
		return
	}
	sh.released = true
	if st.users == 1 {
		st.node.Lose(cause)
	} else if st.node.detach(sh) {
		sh.cancelExpiry()
		st.node.linger(sh.margin)
		sh.loseNow(cause)
	}
	st.leaveOne(true)
	p.review()
}

// forgo ends what attach has begun for the margin.
func (sh *Share) forgo() {
	if sh.margin > 0 {
		sh.s.Forgo(sh)
	}
}

// Withdraw is StartLeaving without waiting for any result.
func (sh *Share) Withdraw() { sh.StartLeaving() }
