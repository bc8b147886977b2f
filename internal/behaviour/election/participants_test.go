package election_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// People look a session up as the server's log has it, and data can hold anything.
func TestParticipantString(t *testing.T) {
	p := recipes.Participant{
		Node: "/l/_c_1-lock-0000000007", Kind: "lock", Data: []byte("10.0.0.1\n\x00"),
		Session: -0x0fff_ffff_ffff_ffff, Since: time.Unix(1700000000, 5000000).UTC(),
		Holding: true,
	}
	require.Equal(t, `/l/_c_1-lock-0000000007: lock, holding, `+
		`session 0xf000000000000001, since 2023-11-14T22:13:20.005Z, `+
		`data "10.0.0.1\n\x00"`, p.String())
	p.Holding = false
	require.Contains(
		t, fmt.Sprint([]recipes.Participant{p}), ": lock, waiting, session 0xf0",
	)
}

func TestParticipants(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path := zkserver.Path(t)
		one, two := locktest.SharedPeer(t), locktest.SharedPeer(t)
		a, b := one.Mutex(path, recipes.WithData([]byte("one"))), two.Mutex(path)
		nodes, err := a.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Empty(t, nodes, "of a lock that was never used")
		all, err := a.Participants(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)

		require.NoError(t, a.Acquire(t.Context()))
		waiting := locktest.Start(func() error { return b.Acquire(t.Context()) })
		one.AwaitChildren(path, 2)
		_, err = one.Conn.Create(path+"/config", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		nodes, err = b.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, 2)
		require.Equal(t, a.LockPath(t.Context()), nodes[0])

		all, err = b.Participants(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Equal(t, nodes, []string{all[0].Node, all[1].Node})
		require.Equal(t, "one", string(all[0].Data))
		require.Regexp(t, `^\S+ \(pid \d+, \S+\)$`, string(all[1].Data), "by default")
		require.Contains(t, string(all[1].Data), fmt.Sprintf("(pid %d, ", os.Getpid()))
		require.Equal(t, []bool{true, false}, []bool{all[0].Holding, all[1].Holding})
		require.Equal(
			t, []int64{one.Conn.SessionID(), two.Conn.SessionID()},
			[]int64{all[0].Session, all[1].Session},
		)
		require.WithinDuration(t, time.Now(), all[0].Since, time.Minute)
		require.False(t, all[1].Since.Before(all[0].Since))
		require.NoError(t, a.Release(t.Context()))
		require.NoError(t, locktest.Within(t, waiting, "b's turn"))
	})
}

func TestManyParticipants(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		lock := p.Mutex(path)
		require.NoError(t, lock.Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		var waiting []<-chan error
		for range 100 {
			waiting = append(
				waiting,
				locktest.Start(func() error {
					return lock.Acquire(recipes.WithOwner(ctx))
				}),
			)
		}
		p.AwaitChildren(path, 101)
		all, err := lock.Participants(t.Context())
		require.NoError(t, err)
		nodes, err := lock.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Len(t, nodes, 101)
		require.Len(t, all, 101)
		for i, participant := range all {
			require.Equal(t, nodes[i], participant.Node)
			require.Equal(t, i == 0, participant.Holding)
		}
		cancel()
		for _, w := range waiting {
			require.ErrorIs(t, locktest.Within(t, w, "cancelled"), context.Canceled)
		}
		require.Equal(t, nodes[0], path+"/"+p.AwaitChildren(path, 1)[0])
		require.NoError(t, lock.Release(t.Context()))
	})
}
