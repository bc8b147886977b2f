package interop_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// Counterpart of Curator's TestInterProcessMutexBase.test2Clients.
func TestOneHolderAtATime(t *testing.T) {
	eachExclusive(t, func(t *testing.T, r recipe) {
		look, path := newGo(t), zkserver.Path(t)
		inGo, inJava := newGo(t).lock(
			r, path,
		).contender(), newJava(t).lock(r, path).contender()
		for _, pair := range [][2]contender{{inGo, inJava}, {inJava, inGo}} {
			holder, other := pair[0], pair[1]
			require.True(t, holder.try(0), "it is free")
			require.False(t, other.try(0))
			require.False(t, other.try(100*time.Millisecond))
			look.awaitChildren(path+r.queue, r.ahead) // who gives up leaves
			look.awaitChildren(path+r.holds, 1)

			waiting := other.acquire()
			look.awaitChildren(path+r.queue, r.ahead+1)
			require.Empty(t, waiting)
			holder.release()
			require.NoError(t, locktest.Within(t, waiting, "the waiter is granted"))
			require.False(t, holder.try(0))
			other.release()
			require.Empty(t, look.children(path+r.queue))
			require.Empty(t, look.children(path+r.holds))
		}
	})
}

// Counterpart of Curator's testReentrant, testReentrantSingleLock and
// testReentrant2Threads.
func TestHeldUntilTheLastRelease(t *testing.T) {
	t.Parallel()
	for _, r := range exclusive {
		if r.ahead == 0 {
			continue // not reentrant
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			path := zkserver.Path(t)
			inGo, inJava := newGo(t).lock(r, path), newJava(t).lock(r, path)
			for _, pair := range [][2]entrance{{inGo, inJava}, {inJava, inGo}} {
				holder, other := pair[0].contender(), pair[1].contender()
				require.True(t, holder.try(0))
				require.True(t, holder.try(0), "it re-enters")
				require.False(
					t, pair[0].contender().try(0),
					"another owner in the same process does not",
				)
				holder.release()
				require.False(t, other.try(0), "it is still held")
				holder.release()
				require.True(t, other.try(0))
				other.release()
			}
		})
	}
}

// Counterpart of Curator's testLocker, with an effect to count.
func TestCountIsExact(t *testing.T) {
	const times = 100
	t.Parallel()
	each(t, slices.Concat(exclusive, cached), func(t *testing.T, r recipe) {
		path := zkserver.Path(t)
		inGo, inJava := newGo(t).lock(r, path), newJava(t).lock(r, path)
		contenders := []contender{
			inGo.contender(), inGo.contender(), inJava.contender(), inJava.contender(),
		}
		if r.name == "mutex" {
			contenders = append(contenders, newGo(t).zkLock(path), newGo(t).zkLock(path))
		}
		requireExact(t, path+"-count", times, contenders)
	})
}

// requireExact lets all contenders increment a number, each so many times, and requires
// that no increment is lost.
func requireExact(t *testing.T, count string, times int, contenders []contender) {
	t.Helper()
	look := newGo(t)
	look.createNumber(count)
	var done []<-chan error
	for _, c := range contenders {
		done = append(done, c.increment(times, count))
	}
	for _, d := range done {
		require.NoError(t, whileCounted(t, look, count, d))
	}
	n, err := look.number(count)
	require.NoError(t, err)
	require.Equal(t, times*len(contenders), n)
}

// whileCounted waits for done, however slow the machine is, as long as the number grows.
func whileCounted(t *testing.T, look *goPeer, count string, done <-chan error) error {
	t.Helper()
	for last := -1; ; {
		select {
		case err := <-done:
			return err
		case <-time.After(locktest.Patience):
			n, err := look.number(count)
			require.NoError(t, err)
			require.Greater(t, n, last, "nobody counts any more")
			last = n
		}
	}
}

// Counterpart of Curator's TestInterProcessMultiMutex.testSomeLocksFailToLock: where a
// member is held on the other side, the members before it are given back.
func TestMultiLockGivesBack(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	goPeer, java := newGo(t), newJava(t)
	inGo := func(r recipe, path string) contender {
		return goPeer.lock(r, path).contender()
	}
	inJava := func(r recipe, path string) contender {
		return java.lock(r, path).contender()
	}
	for _, pair := range [][2]func(recipe, string) contender{
		{inGo, inJava}, {inJava, inGo},
	} {
		both, first, second := pair[0](multiLock, path), pair[1](
			mutex, path+"/a",
		), pair[1](mutex, path+"/b")
		require.True(t, second.try(0))
		require.False(t, both.try(100*time.Millisecond))
		require.True(t, first.try(0))
		second.release()
		require.False(t, both.try(100*time.Millisecond))
		first.release()
		require.True(t, both.try(0))
		require.False(t, first.try(0))
		require.False(t, second.try(0))
		both.release()
	}
}
