package gooselock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gooselock"
	"github.com/zkrecipes/recipes/zktest"
)

func connect(t *testing.T, cluster *zktest.Cluster) *recipes.Client {
	t.Helper()
	client, err := recipes.Connect(t.Context(), cluster.Names()[0], sessionTimeout,
		recipes.WithDialer(cluster.Link("").Dial))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func newLocker(t *testing.T, client *recipes.Client) lock.Locker {
	t.Helper()
	locker, err := gooselock.New(client, lockPath)
	require.NoError(t, err)
	return locker
}

func TestNewReturnsErrors(t *testing.T) {
	t.Parallel()
	client := connect(t, zktest.Start(t))
	_, err := gooselock.New(nil, lockPath)
	require.Error(t, err)
	_, err = gooselock.New(client, "locks")
	require.Error(t, err)
	_, err = gooselock.NewWaitingAtMost(client, lockPath, time.Second, nil)
	require.Error(t, err)
}

func TestUnlockWithoutLock(t *testing.T) {
	t.Parallel()
	locker := newLocker(t, connect(t, zktest.Start(t)))
	require.ErrorContains(t, locker.Unlock(t.Context(), nil), "without Lock")
}

func TestTheWaitIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		held := newLocker(t, connect(t, cluster))
		require.NoError(t, held.Lock(t.Context(), nil))
		bounded, err := gooselock.NewWaitingAtMost(
			connect(t, cluster), lockPath, time.Second)
		require.NoError(t, err)
		require.ErrorIs(t, bounded.Lock(t.Context(), nil), recipes.ErrBusy)
		require.NoError(t, held.Unlock(t.Context(), nil))
		require.NoError(t, bounded.Lock(t.Context(), nil))
		require.NoError(t, bounded.Unlock(t.Context(), nil))
	})
}

// goose says whether it could lock by the error of Up.
func TestGooseReportsThatAnotherHostMigrates(t *testing.T) {
	t.Parallel()
	cluster := zktest.Start(t)
	held := newLocker(t, connect(t, cluster))
	require.NoError(t, held.Lock(t.Context(), nil))
	locker, err := gooselock.NewWaitingAtMost(connect(t, cluster), lockPath, 0)
	require.NoError(t, err)
	db, err := openDatabase(t.TempDir() + "/test.db")
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, nil,
		goose.WithLocker(locker), goose.WithGoMigrations(
			goose.NewGoMigration(1, &goose.GoFunc{}, nil)))
	require.NoError(t, err)
	_, err = provider.Up(t.Context())
	require.ErrorIs(t, err, recipes.ErrBusy)
	require.NoError(t, held.Unlock(t.Context(), nil))
	done, err := provider.Up(t.Context())
	require.NoError(t, err)
	require.Len(t, done, 1)
}

func TestTheCtxEndsAtALossOnly(t *testing.T) {
	t.Parallel()
	cluster := zktest.Start(t)
	client := connect(t, cluster)
	locker := newLocker(t, client)
	ctx, cancel := gooselock.WithLoss(t.Context())
	defer cancel()
	require.NoError(t, locker.Lock(ctx, nil))
	require.NoError(t, locker.Unlock(context.WithoutCancel(ctx), nil))
	require.NoError(t, ctx.Err())
	require.NoError(t, locker.Lock(ctx, nil)) // goose locks again for each step of some
	require.True(t, cluster.ExpireSession(client.SessionID()))
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), recipes.ErrLockLost)
	require.ErrorIs(t,
		locker.Unlock(context.WithoutCancel(ctx), nil), recipes.ErrLockLost)
}

// An owner in the ctx would re-enter the lock that it holds.
func TestEachLockIsAnOwnerOfItsOwn(t *testing.T) {
	t.Parallel()
	locker, err := gooselock.NewWaitingAtMost(connect(t, zktest.Start(t)), lockPath, 0)
	require.NoError(t, err)
	ctx := recipes.WithOwner(t.Context())
	require.NoError(t, locker.Lock(ctx, nil))
	require.ErrorIs(t, locker.Lock(ctx, nil), recipes.ErrBusy)
	require.NoError(t, locker.Unlock(ctx, nil))
}

// Two providers with one locker cannot mix up their locks, not even after a loss.
func TestALockerIsOfOneProvider(t *testing.T) {
	t.Parallel()
	cluster := zktest.Start(t)
	client := connect(t, cluster)
	locker := newLocker(t, client)
	require.NoError(t, locker.Lock(t.Context(), nil))
	require.True(t, cluster.ExpireSession(client.SessionID()))
	require.ErrorContains(t, locker.Lock(t.Context(), nil), "one locker for each")
	require.ErrorIs(t, locker.Unlock(t.Context(), nil), recipes.ErrLockLost)
	require.NoError(t, locker.Lock(t.Context(), nil))
	require.NoError(t, locker.Unlock(t.Context(), nil))
}
