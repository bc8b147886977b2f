package znode

import (
	"context"
	"errors"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
)

// Gone ends the Node since its znode is, or is about to be: cause is ErrGone, ErrUnlisted
// or outcome.ErrSessionEnded.
func (n *Node) Gone(cause error) { n.end(cause) }

// Lose takes note, by whomever it was found out, that the znode can no longer be relied
// on. That is told, too, of a Node that has left and whose delete nobody has confirmed.
func (n *Node) Lose(cause error) {
	if n.end(cause) {
		return
	}
	select {
	case <-n.over.removal.Done():
	default:
		n.tellLoss(cause)
	}
}

// SessionEnded implements reliance.Ephemeral.
func (n *Node) SessionEnded(cause error) { n.Lose(cause) }

// tellLoss tells whoever relies on n, or did when it ended.
func (n *Node) tellLoss(cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.wasHeld {
		n.loseLocked(cause)
	}
}

// loseLocked notifies the Tenants before the Node. A Tenant that waits for the delete is
// woken by the Node's loss, and then has to find its own.
func (n *Node) loseLocked(cause error) {
	n.noteMarginsLocked()
	for t, margin := range n.life.tenants {
		if leavesMargin(cause) {
			n.life.stays.extend(margin)
		}
		t.Lost(cause)
	}
	n.loss.now(cause)
}

// end ends the Node, once; a Node ends in no other way. The holder is notified first,
// then the hooks, then those who wait for the Node. The znode is deleted at once, unless
// the holder has a margin in which to stop.
func (n *Node) end(cause error) bool {
	if !n.endLocking(cause) {
		return false
	}
	n.hooks.Ended(cause)
	n.over.now()
	return true
}

// endLocking is end, but for those who are told with no mutex held.
func (n *Node) endLocking(cause error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := &n.life
	if l.state == stateEnded {
		return false
	}
	if l.state == stateHeld && !errors.Is(cause, ErrLeft) {
		n.loseLocked(cause)
	}
	l.state, l.cause = stateEnded, cause
	if isDeleted(cause) {
		n.s.HoldBack() // before anybody who hears of it asks for anything
	}
	if l.wasHeld && leavesMargin(cause) {
		l.stays.extend(l.margin)
	}
	stays := l.stays.left()
	if l.cancelExpiry != nil {
		l.cancelExpiry()
	}
	n.self.stopLocked()
	if !l.wasHeld || errors.Is(cause, ErrLeft) {
		n.metLocked(&l.abandoned)
	}
	n.over.removal = calls.Start(n.s, func() (struct{}, error) {
		_ = n.s.Pause(context.Background(), stays) // it ends with the connection
		err := n.remove(cause)
		if outcome.Refused(err) {
			// The answer of the call that asked for it, and no end of the obligation.
			n.owe(err)
			return struct{}{}, err
		}
		n.removed(err)
		return struct{}{}, err
	})
	return true
}

// owe goes on with a delete that was refused. n stays a participant until then: its znode
// blocks others.
func (n *Node) owe(refusal error) {
	insist(n.s, n.spec.Log, n.Path, refusal, removal(n.s, n.session, n.delete), n.removed)
}

// removed ends what newNode has begun, once nothing is left to be done about the znode.
func (n *Node) removed(err error) {
	defer n.s.Release()
	defer n.s.Untrack(n.Path)
	n.hooks.Removed(err == nil || errors.Is(err, ErrGone))
	if errors.Is(err, outcome.ErrSessionEnded) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.metLocked(&n.life.sessionOver)
	}
}

// StartLeaving deletes the znode, in the background for as long as the session lasts.
// left waits for that until its ctx is done. Its error says why the Node had been lost
// before, ErrGone or outcome.ErrSessionEnded among others, or why the outcome is not
// known yet.
func (n *Node) StartLeaving() (left func(ctx context.Context) error) {
	if !n.end(ErrLeft) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.metLocked(&n.life.abandoned)
		return func(context.Context) error { return n.Cause() }
	}
	return func(ctx context.Context) error {
		removal := n.over.removal
		select {
		case <-removal.Done(): // an answer that is in wins over a ctx that is done
			return removal.Err()
		default:
		}
		select {
		case <-removal.Done():
			return removal.Err()
		case <-ctx.Done():
			return outcome.Cancelled(ctx)
		case <-n.loss.ctx.Done():
			return context.Cause(n.loss.ctx)
		}
	}
}

// Withdraw is StartLeaving without waiting for any result.
func (n *Node) Withdraw() { n.StartLeaving() }

// AwaitRemoval waits until nothing is left to be done about a Node that has ended. A
// znode with a given name may outlive its session: see Claim.Discard.
func (n *Node) AwaitRemoval(ctx context.Context) error {
	_, err := n.over.removal.Wait(ctx)
	if n.named != nil && (err == nil || errors.Is(err, ErrGone)) {
		n.named.forget(n)
	}
	return err
}

// GiveUp withdraws without a result, in a time that a caller who has run out of time can
// spare. It goes on in the background. Nodes of a later group leave once those of the
// former have, or that time is over.
func GiveUp(ctx context.Context, groups ...[]*Node) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), LeaveWithin)
	defer cancel()
	for _, nodes := range groups {
		for _, n := range nodes {
			n.Withdraw()
		}
		for _, n := range nodes {
			_, _ = n.over.removal.Wait(ctx)
		}
	}
}

// OrWithdraw calls f, which calls code of the user's. If that panics, or ends the
// goroutine, nobody waits any more: the Nodes are withdrawn.
func OrWithdraw(nodes []*Node, f func()) {
	returned := false
	defer func() {
		if !returned {
			for _, n := range nodes {
				n.Withdraw()
			}
		}
	}()
	f()
	returned = true
}

// remove deletes the znode of a Node that ended by cause, trying for as long as the
// session lasts.
func (n *Node) remove(cause error) error {
	if isDeleted(cause) {
		return cause
	}
	err := n.s.Retry(context.Background(), removal(n.s, n.session, n.delete))
	if isLoss(err) {
		n.tellLoss(err)
	}
	return err
}

// leavesMargin tells whether the znode of a lost hold may stay for the margin: this
// process has decided by itself that the hold is lost. All other losses are the doing of
// ZooKeeper or of somebody else, and others may hold the lock already.
func leavesMargin(cause error) bool {
	return errors.Is(cause, outcome.ErrSuspended) || errors.Is(cause, ErrExpired)
}

// isDeleted tells of the cause of an end whether the znode has gone, for certain.
func isDeleted(cause error) bool {
	return errors.Is(cause, ErrGone) && !errors.Is(cause, ErrUnlisted)
}

// isLoss tells whether err says that a znode was lost, and not that a call failed.
func isLoss(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, outcome.ErrSessionEnded) ||
		errors.Is(err, outcome.ErrSuspended) || errors.Is(err, outcome.ErrClosed)
}

// delete sends the delete of the znode: by its path, which no other znode has, or by what
// is known of one with a given name.
func (n *Node) delete() error {
	if n.named != nil {
		return n.named.delete(n.isOwn)
	}
	return n.s.Delete(n.Path, -1)
}
