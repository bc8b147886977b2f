package znode

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// Attach lets t rely on n, and be told of a loss from now on; false if n is not held, or
// not any more.
func (n *Node) Attach(t Tenant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.state != stateHeld {
		return false
	}
	if n.life.tenants == nil {
		n.life.tenants = map[Tenant]struct{}{}
	}
	n.life.tenants[t] = struct{}{}
	return true
}

// Detach undoes Attach; false if n is not held any more, and t was told.
func (n *Node) Detach(t Tenant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.state != stateHeld {
		return false
	}
	delete(n.life.tenants, t)
	return true
}

// Tenants returns who is attached.
func (n *Node) Tenants() []Tenant {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.life.tenants))
}

// Check asks the clock whether n, which is held, can be relied on at this moment. If it
// cannot, although nobody may have been told yet, n is lost, unless it has ended before.
func (n *Node) Check() error {
	err := n.s.Hold(n.Path, 0)
	if errors.Is(err, outcome.ErrTooShort) { // by what is known of the servers since
		err = fmt.Errorf("%w: %w", outcome.ErrSuspended, err)
	}
	if err != nil && !n.HasEnded() { // one that has may be untracked
		n.Lose(err)
	}
	return err
}
