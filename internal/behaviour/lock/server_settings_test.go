package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// What docs/servers.md says of settings, on a server that has them. More of them are in
// TestHazardE20_DirectoriesAreContainers and TestLostWithASessionBelowTwoTicks.

// The server hangs up on one client more from an address; Connect waits for a place.
func TestSettingMaxClientCnxns(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "maxClientCnxns")
	servers := zkserver.Start(t, zkserver.Config("maxClientCnxns=1")).Connect()
	first, err := locktest.Open(t.Context(), t, servers, 10*time.Second)
	require.NoError(t, err)
	defer first.Close()

	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = locktest.Open(ctx, t, servers, 10*time.Second)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, servers)
	require.ErrorContains(t, err, "maxClientCnxns")

	first.Close()
	second, err := locktest.Open(t.Context(), t, servers, 10*time.Second)
	require.NoError(t, err)
	second.Close()
}

// The server takes no data that is longer. The lock says so, and its session lasts.
func TestSettingJuteMaxBuffer(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "jute.maxbuffer")
	servers := zkserver.Start(t, zkserver.JVM("-Djute.maxbuffer=20000")).Connect()
	p := locktest.NewPeer(t, servers, locktest.Lasting)
	session := p.Conn.SessionID()
	for size, fits := range map[int]bool{10_000: true, 30_000: false} {
		ctx := locktest.Owner(t)
		err := p.Mutex("/lock", recipes.WithData(make([]byte, size))).Acquire(ctx)
		if fits {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "jute.maxbuffer")
		require.ErrorContains(t, err, "30000 bytes")
	}
	require.Equal(t, session, p.Conn.SessionID())
}

// With skipACL anyone can delete a holder's znode, without it nobody who lacks the right.
func TestSettingSkipACL(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "zookeeper.skipACL")
	for value, want := range map[string]error{"no": zk.ErrNoAuth, "yes": nil} {
		servers := zkserver.Start(t, zkserver.JVM("-Dzookeeper.skipACL="+value)).Connect()
		c, err := locktest.Open(t.Context(), t, servers, locktest.Lasting,
			recipes.WithAuth("digest", []byte("anna:secret")))
		require.NoError(t, err)
		t.Cleanup(c.Close)
		lock := locktest.NewMutex(t, c, "/lock",
			recipes.WithACL(zk.DigestACL(zk.PermAll, "anna", "secret")))
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		hold := lock.Hold(ctx)

		stranger := locktest.NewPeer(t, servers, locktest.Lasting)
		require.ErrorIs(t, stranger.Conn.Delete(lock.LockPath(ctx), -1), want, value)
		if want != nil {
			require.NoError(t, lock.Release(ctx))
			continue
		}
		locktest.Within(t, hold.Lost(), "the holder is not told")
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
	}
}
