package lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestReentryByGoroutine(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		lock := p.Mutex(path)
		ctx := t.Context()
		for range 3 {
			require.NoError(t, lock.Acquire(ctx))
		}
		ok, err := lock.AcquireTimeout(ctx, 0)
		require.NoError(t, err)
		require.True(t, ok)
		require.Len(t, p.Children(path), 1, "a re-entry made a znode")
		for range 3 {
			require.NoError(t, lock.Release(ctx))
			require.True(t, lock.IsOwned(ctx))
		}
		require.NoError(t, lock.Release(ctx))
		require.False(t, lock.IsOwned(ctx))
		require.Empty(t, p.Children(path))
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
	})
}

func TestReentryByContext(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		lock := locktest.SharedPeer(t).Mutex(zkserver.Path(t))
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		type key struct{}
		derived, cancel := context.WithCancel(context.WithValue(ctx, key{}, "value"))
		defer cancel()
		require.NoError(t, locktest.Within(
			t, locktest.Start(func() error { return lock.Acquire(derived) }),
			"re-entry on another goroutine",
		))
		require.NoError(t, locktest.Within(
			t, locktest.Start(func() error { return lock.Release(derived) }),
			"release on another goroutine",
		))
		require.True(t, lock.IsOwned(ctx))

		require.False(
			t, lock.IsOwned(t.Context()),
			"the goroutine is not the owner that its ctx had carried",
		)
		require.ErrorIs(t, lock.Release(t.Context()), recipes.ErrNotOwner)
		require.ErrorIs(
			t, lock.Release(recipes.WithOwner(ctx)), recipes.ErrNotOwner,
			"an owner within an owner is another one",
		)
		require.NoError(t, lock.Release(ctx))
	})
}

func TestOneOwnerOnTwoGoroutinesAtOnce(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		other, lock := locktest.SharedPeer(t).Mutex(path), p.Mutex(path)
		require.NoError(t, other.Acquire(t.Context()))
		ctx := locktest.Owner(t)
		one := locktest.Start(func() error { return lock.Acquire(ctx) })
		p.AwaitChildren(path, 2)
		two := locktest.Start(func() error { return lock.Acquire(ctx) })
		impatient, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, lock.Acquire(impatient), context.DeadlineExceeded)
		require.NoError(t, other.Release(t.Context()))
		require.NoError(t, locktest.Within(t, one, "first acquire"))
		require.NoError(t, locktest.Within(t, two, "second acquire, a re-entry"))
		require.Len(t, p.Children(path), 1)
		require.NoError(t, lock.Release(ctx))
		require.NoError(t, lock.Release(ctx))
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
	})
}

func TestGoroutinesOnOneValueExcludeEachOther(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		lock := p.Mutex(path)
		require.NoError(t, lock.Acquire(t.Context()))
		ok, err := lock.AcquireTimeout(locktest.Owner(t), 0)
		require.NoError(t, err)
		require.False(t, ok)

		require.ErrorIs(t, locktest.Within(
			t, locktest.Start(func() error { return lock.Release(t.Context()) }),
			"release",
		), recipes.ErrNotOwner)
		got := make(chan struct{})
		done := locktest.Start(func() error {
			if err := lock.Acquire(t.Context()); err != nil {
				return err
			}
			close(got)
			return lock.Release(t.Context())
		})
		p.AwaitChildren(path, 2)
		select {
		case <-got:
			t.Fatal("two goroutines hold the lock")
		default:
		}
		require.NoError(t, lock.Release(t.Context()))
		require.NoError(t, locktest.Within(t, done, "the other goroutine's turn"))
	})
}
