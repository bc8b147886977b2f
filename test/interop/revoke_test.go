package interop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// eachRevocable runs a test for each lock that can be asked back.
func eachRevocable(t *testing.T, f func(t *testing.T, r recipe)) {
	t.Parallel()
	for _, r := range []recipe{mutex, readLock, writeLock} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			f(t, r)
		})
	}
}

// writer returns the recipe that excludes all holders of r.
func writer(r recipe) recipe {
	if r.kind == "mutex" {
		return mutex
	}
	return writeLock
}

// Counterpart of Curator's TestInterProcessMutex.testRevoking: Go asks Java, a holder and
// one who waits.
func TestGoAsksJava(t *testing.T) {
	eachRevocable(t, func(t *testing.T, r recipe) {
		path := zkserver.Path(t)
		look, java, inGo := newGo(t), newJava(t), newGo(t).lock(
			writer(r), path,
		).contender()
		holder, waiter := java.lock(r, path).owner(), java.lock(r, path).owner()
		holder.do("revocable")
		require.True(t, holder.try(0))
		waiting := inGo.acquire()
		node := path + "/" + look.awaitChildren(path, 2)[0]
		require.NoError(t, recipes.AttemptRevoke(t.Context(), look.Client, node))
		locktest.Within(t, java.jvm.event(holder.name), "the holder's listener is called")
		require.Empty(t, waiting, "whether to release is up to the holder")
		holder.release()
		require.NoError(t, locktest.Within(t, waiting, "Go is granted"))

		waiter.do("revocable")
		javaWaiting := waiter.acquire()
		node = path + "/" + look.awaitChildren(path, 2)[1]
		// Curator does not look at what is there when it begins to watch, so one request
		// may be too early.
		locktest.Eventually(t, func() bool {
			require.NoError(t, recipes.AttemptRevoke(t.Context(), look.Client, node))
			return len(java.jvm.event(waiter.name)) > 0
		}, "the waiter's listener is not called")
		require.Empty(t, javaWaiting)
		inGo.release()
		require.NoError(t, locktest.Within(t, javaWaiting, "Java is granted"))
		waiter.release()
		require.NoError(
			t, recipes.AttemptRevoke(t.Context(), look.Client, node), "it is gone",
		)
	})
}

// Java asks Go, a holder and one who waits, any number of times.
func TestJavaAsksGo(t *testing.T) {
	eachRevocable(t, func(t *testing.T, r recipe) {
		path := zkserver.Path(t)
		look, java := newGo(t), newJava(t)
		asked := make(chan struct{}, 100)
		inGo := newGo(t).lock(r, path).owner()
		inGo.lock.(interface {
			MakeRevocable(listener func())
		}).MakeRevocable(func() { asked <- struct{}{} })
		inJava := java.lock(writer(r), path).contender()
		for range 2 {
			require.True(t, inGo.try(0))
			waiting := inJava.acquire()
			node := path + "/" + look.awaitChildren(path, 2)[0]
			for range 2 {
				java.do("revoke", java.name, node)
				locktest.Within(t, asked, "Go's listener is called")
			}
			require.Empty(t, waiting, "whether to release is up to the holder")
			inGo.release()
			require.NoError(t, locktest.Within(t, waiting, "Java is granted"))

			ctx, giveUp := context.WithCancel(inGo.ctx)
			goWaits := locktest.Start(func() error { return inGo.lock.Acquire(ctx) })
			node = path + "/" + look.awaitChildren(path, 2)[1]
			java.do("revoke", java.name, node)
			locktest.Within(t, asked, "Go's listener is called")
			giveUp()
			require.ErrorIs(
				t, locktest.Within(t, goWaits, "Go gives up"), context.Canceled,
			)
			look.awaitChildren(path, 1)
			inJava.release()
		}
		java.do("revoke", java.name, path+"/lock-0000000000") // a node that is gone
		require.Empty(t, asked)
	})
}
