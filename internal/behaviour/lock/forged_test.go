package lock_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A shufflingConn lists in an order by chance, as a server does.
type shufflingConn struct{ *recipes.Client }

func (c shufflingConn) Children(path string) ([]string, *zk.Stat, error) {
	children, stat, err := c.Client.Children(path)
	rand.Shuffle(len(children), func(i, j int) {
		children[i], children[j] = children[j], children[i]
	})
	return children, stat, err
}

// forge creates znodes whose numbers make a cycle with that of a holder: by serial
// arithmetic each comes before the next, and the last before the holder's.
func forge(t *testing.T, conn recipes.Conn, holder string) (forged []string) {
	t.Helper()
	dir, name := path.Split(holder)
	digits := len(name) - 10
	kind := name[len("_c_")+len("0b2d2e5c-3b0b-4a0f-8f0b-1e6f1e7a9c55-") : digits]
	seq, err := strconv.Atoi(name[digits:])
	require.NoError(t, err)
	for i, far := range []int64{700e6, 1400e6, 2800e6} {
		number := int32(int64(seq) + 1 + far) // it wraps on purpose
		node, err := conn.Create(
			fmt.Sprintf("%s%c-%s%010d", dir, 'a'+i, kind, number),
			nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll),
		)
		require.NoError(t, err)
		forged = append(forged, node)
	}
	return forged
}

// Whoever has the permission CREATE can give a znode any number, and made a second holder
// so. A queue whose order is not certain is refused; what it is refused for is named.
func TestForgedNumbersMakeNoSecondHolder(t *testing.T) {
	for name, newLock := range map[string]locktest.Maker{
		"mutex":           locktest.MakeMutex,
		"write lock":      locktest.MakeWriteLock,
		"semaphore mutex": locktest.MakeSemaphoreMutex,
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			a, err := newLock(b.Ours, "/lock")
			require.NoError(t, err)
			other, err := newLock(shufflingConn{b.Other}, "/lock")
			require.NoError(t, err)
			for range 50 {
				ctx := locktest.Owner(t)
				require.NoError(t, a.Acquire(ctx))
				hold := a.Hold(ctx)
				forged := forge(t, b.Ours, hold.Path())
				ok, err := other.AcquireTimeout(ctx, time.Second)
				require.False(t, ok, "two holders")
				require.ErrorContains(t, err, "delete the one that no lock")
				require.ErrorContains(t, err, path.Dir(hold.Path()))
				require.NoError(t, hold.Err())
				require.NoError(t, a.Release(ctx))
				for _, node := range forged {
					require.NoError(t, b.Ours.Delete(node, -1))
				}
			}
			require.NoError(t, other.Acquire(locktest.Owner(t)))
		})
	}
}

// At a semaphore's gate a second one would hand out the same lease.
func TestForgedNumbersAtASemaphoresGate(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		semaphore := func(conn recipes.Conn) *recipes.InterProcessSemaphoreV2 {
			return locktest.NewSemaphore(t, conn, "/lock", 1)
		}
		first, err := semaphore(b.Ours).Acquire(t.Context())
		require.NoError(t, err)
		second := make(chan *recipes.Lease, 1)
		go func() {
			lease, err := semaphore(b.Ours).Acquire(t.Context())
			require.NoError(t, err)
			second <- lease
		}()
		time.Sleep(time.Second) // virtual: it has gone through the gate, and waits
		gate := locktest.Children(t, b.Ours, "/lock/locks")
		require.Len(t, gate, 1)
		forged := forge(t, b.Ours, "/lock/locks/"+gate[0])
		for range 20 {
			leases, err := semaphore(shufflingConn{b.Other}).AcquireTimeout(
				t.Context(), 1, time.Second)
			require.Empty(t, leases)
			require.ErrorContains(t, err, "in /lock/locks: the order is not certain")
		}
		require.NoError(t, first.Err())
		require.NoError(t, first.Release(t.Context()))
		require.NoError(t, (<-second).Release(t.Context()))
		for _, node := range forged {
			require.NoError(t, b.Ours.Delete(node, -1))
		}
		_, err = semaphore(b.Other).Acquire(t.Context())
		require.NoError(t, err)
	})
}
