package registration

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/zktest"
)

// A reader forgets the members that have left: ids may be new with each start.
func TestAReaderForgetsThoseThatHaveLeft(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us := queuetest.NewPeer(t, c, "us")
		_, err := us.Create("/a", nil, zk.FlagEphemeral, queuetest.Anyone)
		require.NoError(t, err)
		ctx := queuetest.Bounded(t)
		g := newGroup(us.S, "/", func([]Member) bool { return true })
		_, err = g.see(ctx, []string{"a"}, false)
		require.NoError(t, err)
		require.Len(t, g.known, 1)
		_, err = g.see(ctx, nil, false)
		require.NoError(t, err)
		require.Empty(t, g.known)
	})
}
