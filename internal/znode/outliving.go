package znode

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
)

// outliveLocked takes note that the session has ended before the znode was deleted.
func (n *Node) outliveLocked() {
	if o := &n.outlives; !o.sessionOver {
		o.sessionOver = true
		n.deleteLocked()
	}
}

// abandonLocked takes note that nobody relies on the Node any more.
func (n *Node) abandonLocked() {
	if o := &n.outlives; !o.abandoned {
		o.abandoned = true
		n.deleteLocked()
	}
}

func (n *Node) abandon() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.abandonLocked()
}

func (n *Node) deleteLocked() {
	if !n.outlives.sessionOver || !n.outlives.abandoned {
		return
	}
	stays := max(time.Until(n.outlives.margin), time.Until(n.life.staysUntil))
	calls.Start(n.s, func() (none struct{}, err error) {
		_ = n.s.Pause(context.Background(), stays) // it ends with the connection
		err = n.s.Retry(context.Background(), func() error {
			err := n.s.Delete(n.Path, -1)
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			return err
		})
		if outcome.Final(err) && !errors.Is(err, outcome.ErrClosed) {
			n.spec.Log.Warn("zookeeper lock: cannot delete the znode of a session that "+
				"has ended; it remains until the server deletes it",
				"node", n.Path, "error", err)
		}
		return none, nil
	})
}
