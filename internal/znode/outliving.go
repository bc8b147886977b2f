package znode

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
)

// ZooKeeper deletes the znode of a session that has ended moments later. ClickHouse Keeper
// gives a client that reconnects another session, and keeps the znodes of the former one
// for that one's timeout: all that time its own process would queue behind it. So it is
// deleted by its path, in whatever session there is, once nobody relies on the Node any
// more. No other znode has that path, since the Node's id is in it.

// outliveLocked takes note that the session has ended before the znode was deleted.
func (n *Node) outliveLocked() {
	if !n.life.sessionOver {
		n.life.sessionOver = true
		n.deleteLocked()
	}
}

// abandonLocked takes note that nobody relies on the Node any more.
func (n *Node) abandonLocked() {
	if !n.life.abandoned {
		n.life.abandoned = true
		n.deleteLocked()
	}
}

func (n *Node) abandon() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.abandonLocked()
}

// noteMarginsLocked takes note of the margins of those who are told of a loss, whatever
// it is.
func (n *Node) noteMarginsLocked() {
	longest := n.life.margin
	for _, margin := range n.life.tenants {
		longest = max(longest, margin)
	}
	if n.life.margins.at == nil {
		n.life.margins.extend(longest)
	}
}

func (n *Node) deleteLocked() {
	if !n.life.sessionOver || !n.life.abandoned {
		return
	}
	stays := max(n.life.stays.left(), n.life.margins.left())
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
