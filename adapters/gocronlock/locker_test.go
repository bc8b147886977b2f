package gocronlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gocronlock"
	"github.com/zkrecipes/recipes/zktest"
)

func TestConstructorsReturnErrors(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		client, _ := connect(t, cluster, "host")
		_, err := gocronlock.NewLocker(nil, "/cron")
		require.Error(t, err)
		_, err = gocronlock.NewLocker(client, "cron")
		require.Error(t, err)
		_, err = gocronlock.NewLocker(client, "/cron", recipes.WithMaxHold(-1))
		require.Error(t, err)
		_, err = gocronlock.NewSpacedLocker(client, "/cron", -time.Second)
		require.ErrorContains(t, err, "negative")
		_, err = gocronlock.NewLocker(client, "/")
		require.NoError(t, err)
	})
}

// Jobs have names such as "main.report" or "a/b", and znodes must not.
func TestEachJobHasALockOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		client, _ := connect(t, cluster, "host")
		locker, err := gocronlock.NewLocker(client, "/cron")
		require.NoError(t, err)
		for _, name := range []string{
			"main.report", "a/b", "a%2Fb", "..", ".", "täglich", "a\x00b", "a b",
		} {
			held, err := locker.Lock(t.Context(), name)
			require.NoError(t, err, name)
			_, err = locker.Lock(t.Context(), name)
			require.ErrorIs(t, err, recipes.ErrBusy, name)
			require.NoError(t, held.Unlock(t.Context()))
		}
		_, err = locker.Lock(t.Context(), "")
		require.ErrorContains(t, err, "WithName")
	})
}

// An owner in the ctx of the job would re-enter the lock of its last run.
func TestEachRunIsAnOwnerOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		client, _ := connect(t, cluster, "host")
		locker, err := gocronlock.NewLocker(client, "/cron")
		require.NoError(t, err)
		ctx := recipes.WithOwner(t.Context())
		held, err := locker.Lock(ctx, "report")
		require.NoError(t, err)
		_, err = locker.Lock(ctx, "report")
		require.ErrorIs(t, err, recipes.ErrBusy)
		require.NoError(t, held.Unlock(ctx))
	})
}

func TestUnlockReleasesAtOnceIfTheLockHasLastedLongEnough(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		client, _ := connect(t, cluster, "host")
		locker, err := gocronlock.NewSpacedLocker(client, "/cron", time.Hour)
		require.NoError(t, err)
		held, err := locker.Lock(t.Context(), "report")
		require.NoError(t, err)
		time.Sleep(time.Hour)
		require.NoError(t, held.Unlock(t.Context()))
		held, err = locker.Lock(t.Context(), "report")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // as when the scheduler shuts down
		require.NoError(t, held.Unlock(ctx))
		time.Sleep(time.Hour - time.Second)
		_, err = locker.Lock(t.Context(), "report")
		require.ErrorIs(t, err, recipes.ErrBusy)
		time.Sleep(2 * time.Second)
		_, err = locker.Lock(t.Context(), "report")
		require.NoError(t, err)
	})
}

// jobError returns the error of a job that gocron runs once, or that of its lock.
func jobError(
	t *testing.T, task gocron.Task, by gocron.SchedulerOption, opts ...gocron.JobOption,
) error {
	t.Helper()
	scheduler, err := gocron.NewScheduler(by)
	require.NoError(t, err)
	errs := make(chan error, 1)
	report := func(_ uuid.UUID, _ string, err error) { errs <- err }
	_, err = scheduler.NewJob(
		gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), task,
		append(opts, gocron.WithEventListeners(
			gocron.AfterJobRunsWithError(report), gocron.AfterLockError(report),
			gocron.AfterJobRuns(func(uuid.UUID, string) { errs <- nil }),
		))...)
	require.NoError(t, err)
	scheduler.Start()
	err = <-errs
	require.NoError(t, scheduler.Shutdown())
	return err
}

// The mistakes that are easy to make, each with what gocron receives.
func TestMistakesAreReportedToGocron(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		client, _ := connect(t, cluster, "host")
		locker, err := gocronlock.NewLocker(client, "/cron")
		require.NoError(t, err)
		other, err := gocronlock.NewLocker(client, "/other")
		require.NoError(t, err)
		latch, err := recipes.NewLeaderLatch(client, "/leader")
		require.NoError(t, err)
		elector := gocronlock.NewElector(latch)
		run := func(context.Context, *recipes.Hold) error { return nil }
		named := gocron.WithName("report")
		locked := gocron.WithDistributedLocker(locker)

		require.NoError(t, jobError(t, gocronlock.LockedTask(locker, run), locked, named))
		err = jobError(t, gocronlock.LockedTask(locker, run), locked)
		require.ErrorContains(t, err, "the job has no name")
		time.Sleep(2 * gocronlock.DefaultSpacing)
		err = jobError(t, gocronlock.LockedTask(other, run), locked, named)
		require.ErrorContains(t, err, "does not use this locker")
		time.Sleep(2 * gocronlock.DefaultSpacing)
		err = jobError(t, gocronlock.LockedTask(nil, run), locked, named)
		require.ErrorContains(t, err, "the locker is a <nil>")
		time.Sleep(2 * gocronlock.DefaultSpacing)
		err = jobError(t, gocronlock.LeaderTask(nil, run), locked, named)
		require.ErrorContains(t, err, "the elector is a <nil>")
		require.NoError(t, jobError(t, gocronlock.LeaderTask(elector, run),
			gocron.WithDistributedElector(elector)))
		require.NoError(t, latch.Close(t.Context()))
		time.Sleep(2 * gocronlock.DefaultSpacing)
		err = jobError(t, gocronlock.LeaderTask(elector, run), locked, named)
		require.ErrorIs(t, err, gocronlock.ErrNotLeader)
	})
}
