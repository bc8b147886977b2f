package znode

import (
	"context"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
)

// ZooKeeper deletes the znodes of a session moments after its end. ClickHouse Keeper
// gives a client that reconnects another session, and keeps the znodes of the former one
// for that one's timeout: its own process would queue behind them. So a znode that
// outlives its session is deleted by its path, in whatever session there is, once nobody
// relies on the Node: the owner of a held one has left, and the margins are over. No
// other znode has that path, since the Node's id is in it.

// metLocked takes note that one of the two conditions for that delete is met, which is a
// field of n.life. Once both are, the delete begins.
func (n *Node) metLocked(condition *bool) {
	before := *condition
	*condition = true
	// One with a given name is its Claim's to delete.
	if !before && n.life.sessionOver && n.life.abandoned && n.named == nil {
		n.deleteByPathLocked()
	}
}

// noteMarginsLocked takes note, at the first loss, of until when the longest margin lasts
// of those who are told of it.
func (n *Node) noteMarginsLocked() {
	longest := n.life.margin
	for _, margin := range n.life.tenants {
		longest = max(longest, margin)
	}
	if n.life.margins.at == nil {
		n.life.margins.extend(longest)
	}
}

// deleteByPathLocked begins the delete, which ends with the connection at the latest.
func (n *Node) deleteByPathLocked() {
	stays, ctx := max(n.life.stays.left(), n.life.margins.left()), context.Background()
	calls.Start(n.s, func() (struct{}, error) {
		_ = n.s.Pause(ctx, stays)
		try := func() error { return n.s.Delete(n.Path, -1) }
		err := n.s.Retry(ctx, try)
		if outcome.Refused(err) {
			insist(n.s, n.spec.Log, n.Path, err, try, nil)
		}
		return struct{}{}, err
	})
}
