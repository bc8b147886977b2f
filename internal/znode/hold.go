package znode

import (
	"errors"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// Hold makes a waiting Node, whose token is known, a held one. It fails with ErrEnded if
// the Node has ended. With any other error it goes on waiting: with outcome.ErrSuspended,
// to be held after a confirmation by the server; the others are permanent.
func (n *Node) Hold() error {
	n.mu.Lock()
	if n.life.state == stateEnded {
		n.mu.Unlock()
		return ErrEnded
	}
	// Before Conn.Hold: a loss right behind that must be told.
	n.life.state, n.life.wasHeld = stateHeld, true
	n.mu.Unlock()
	err := n.s.Hold(n.Path, n.spec.LossMargin)
	switch {
	case err == nil && n.over.ctx.Err() != nil:
		return ErrEnded
	case err == nil:
		n.WatchSelfLater(Soon)
		return nil
	case errors.Is(err, outcome.ErrSessionEnded):
		n.Lose(err)
		return ErrEnded
	default:
		n.unhold()
		return err
	}
}

// unhold undoes a hold that the session has refused, and of which nobody was told.
func (n *Node) unhold() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.life.wasHeld = false
	if n.life.state == stateHeld {
		n.life.state = stateQueued
	}
}

// IsIdle tells of a Node whose znode may be cached whether nobody uses it: it is held and
// has no Tenant, or it has ended and is on its way out.
func (n *Node) IsIdle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch n.life.state {
	case stateHeld:
		return len(n.life.tenants) == 0
	case stateEnded:
		return true
	}
	return false
}

// ExpireLater ends a held Node after the longest time that its Terms allow.
func (n *Node) ExpireLater() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.spec.MaxHold > 0 && n.life.state == stateHeld {
		n.life.cancelExpiry = n.s.After(n.spec.MaxHold, func() { n.end(ErrExpired) })
	}
}
