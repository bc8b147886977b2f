package gocronlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gocronlock"
	"github.com/zkrecipes/recipes/zktest"
)

// bubble runs a test on virtual time.
func bubble(t *testing.T, test func(t *testing.T, cluster *zktest.Cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, zktest.Start(t)) })
}

// connect returns a client, and the link that it has for itself.
func connect(
	t *testing.T, cluster *zktest.Cluster, name string,
) (*recipes.Client, *zktest.Link) {
	t.Helper()
	link := cluster.Link(name)
	client, err := recipes.Connect(t.Context(), cluster.Names()[0], 10*time.Second,
		recipes.WithDialer(link.Dial))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client, link
}

// schedule starts a scheduler with one job, "report", and the listeners.
func schedule(
	t *testing.T, by gocron.SchedulerOption, every gocron.JobDefinition,
	task gocron.Task, listeners ...gocron.EventListener,
) gocron.Job {
	t.Helper()
	scheduler, err := gocron.NewScheduler(by)
	require.NoError(t, err)
	job, err := scheduler.NewJob(every, task, gocron.WithName("report"),
		gocron.WithEventListeners(listeners...))
	require.NoError(t, err)
	scheduler.Start()
	t.Cleanup(func() { require.NoError(t, scheduler.Shutdown()) })
	return job
}

const everyMinute = "0 * * * * *"

// runsPerTick has three hosts run a job that takes no time, for ten minutes. Their clocks
// differ by almost half a second.
func runsPerTick(
	t *testing.T, newLocker func(conn recipes.Conn) (gocron.Locker, error),
) map[time.Time]int {
	t.Helper()
	var mu sync.Mutex
	runs := map[time.Time]int{}
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		for i, name := range []string{"a", "b", "c"} {
			client, _ := connect(t, cluster, name)
			locker, err := newLocker(client)
			require.NoError(t, err)
			late := time.Duration(i) * 240 * time.Millisecond
			begin := time.Now().Truncate(time.Minute).Add(time.Minute + late)
			scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
			require.NoError(t, err)
			_, err = scheduler.NewJob(gocron.DurationJob(time.Minute),
				gocronlock.LockedTask(locker, func(context.Context, *recipes.Hold) error {
					mu.Lock()
					defer mu.Unlock()
					runs[time.Now().Truncate(time.Minute)]++
					return nil
				}),
				gocron.WithName("report"),
				gocron.WithStartAt(gocron.WithStartDateTime(begin)))
			require.NoError(t, err)
			scheduler.Start()
			t.Cleanup(func() { require.NoError(t, scheduler.Shutdown()) })
		}
		time.Sleep(10*time.Minute + 30*time.Second)
	})
	return runs
}

func TestOneHostRunsTheJobAtEachTickAlsoIfClocksDiffer(t *testing.T) {
	runs := runsPerTick(t, func(conn recipes.Conn) (gocron.Locker, error) {
		return gocronlock.NewLocker(conn, "/cron")
	})
	require.Len(t, runs, 10)
	for tick, n := range runs {
		require.Equal(t, 1, n, tick)
	}
}

// A lock that ends with the job admits each host whose clock is late.
func TestWithoutSpacingAShortJobRunsOnEachHost(t *testing.T) {
	runs := runsPerTick(t, func(conn recipes.Conn) (gocron.Locker, error) {
		return gocronlock.NewSpacedLocker(conn, "/cron", 0)
	})
	require.Len(t, runs, 10)
	for tick, n := range runs {
		require.Equal(t, 3, n, tick)
	}
}

// The other host does not begin before the first one was notified.
func TestInAnOutageTheJobsCtxEndsBeforeAnotherHostBegins(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		type end struct {
			at    time.Time
			cause error
		}
		begins, ends := make(chan *recipes.Hold, 1), make(chan end, 1)
		failures, skipped := make(chan error, 1), make(chan error, 1000)
		client, link := connect(t, cluster, "first")
		locker, err := gocronlock.NewLocker(client, "/cron")
		require.NoError(t, err)
		schedule(t, gocron.WithDistributedLocker(locker),
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocronlock.LockedTask(locker,
				func(ctx context.Context, hold *recipes.Hold) error {
					begins <- hold
					<-ctx.Done()
					ends <- end{time.Now(), context.Cause(ctx)}
					return nil // a job that hides its loss
				}),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) {
				failures <- err
			}))
		first := <-begins

		other, _ := connect(t, cluster, "second")
		locker, err = gocronlock.NewLocker(other, "/cron")
		require.NoError(t, err)
		began := make(chan int64, 1000)
		var at time.Time
		schedule(t, gocron.WithDistributedLocker(locker),
			gocron.DurationJob(100*time.Millisecond),
			gocronlock.LockedTask(locker,
				func(_ context.Context, hold *recipes.Hold) error {
					if at.IsZero() {
						at = time.Now()
					}
					began <- hold.FencingToken()
					return nil
				}),
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
				skipped <- err
			}))
		require.ErrorIs(t, <-skipped, recipes.ErrBusy)
		link.Cut()
		require.Greater(t, <-began, first.FencingToken())
		ended := <-ends
		require.ErrorIs(t, ended.cause, recipes.ErrLockLost)
		require.Less(t, ended.at, at)
		require.ErrorIs(t, <-failures, recipes.ErrLockLost)
		link.Heal()
	})
}

// A run that is delayed between its lock and its task, and has lost the lock, must not
// run under the lock of the next run.
func TestALostRunDoesNotUseTheLockOfTheNextOne(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		client, _ := connect(t, cluster, "host")
		locker, err := gocronlock.NewLocker(client, "/cron")
		require.NoError(t, err)
		arrived, goOn := make(chan bool, 10), make(chan bool)
		ran, failures := make(chan bool, 10), make(chan error, 10)
		first := true
		job := schedule(t, gocron.WithDistributedLocker(locker),
			gocron.CronJob(everyMinute, true),
			gocronlock.LockedTask(locker,
				func(context.Context, *recipes.Hold) error {
					ran <- true
					<-goOn // so the lock is held while the first run goes on
					return nil
				}),
			gocron.BeforeJobRuns(func(uuid.UUID, string) {
				arrived <- true
				if first {
					first = false
					require.True(t, cluster.ExpireSession(client.SessionID()))
					<-goOn
				}
			}),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) {
				failures <- err
			}))
		<-arrived
		time.Sleep(time.Minute) // until the client has a new session
		require.NoError(t, job.RunNow())
		<-arrived
		<-ran        // of the second run
		goOn <- true // to the first run, which has waited for longer
		require.ErrorContains(t, <-failures, "a later run has the lock")
		require.Empty(t, ran)
		goOn <- true
	})
}

// A loss of the leadership ends the job, and the candidate rejoins.
func TestAnElectorRejoinsAfterALoss(t *testing.T) {
	bubble(t, func(t *testing.T, cluster *zktest.Cluster) {
		client, _ := connect(t, cluster, "host")
		latch, err := recipes.NewLeaderLatch(client, "/leader")
		require.NoError(t, err)
		elector := gocronlock.NewElector(latch)
		terms, failures := make(chan int64, 10), make(chan error, 10)
		schedule(t, gocron.WithDistributedElector(elector),
			gocron.CronJob(everyMinute, true),
			gocronlock.LeaderTask(elector,
				func(ctx context.Context, term *recipes.Hold) error {
					terms <- term.FencingToken()
					<-ctx.Done()
					return context.Cause(ctx)
				}),
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) {
				failures <- err
			}))
		first := <-terms
		require.True(t, cluster.ExpireSession(client.SessionID()))
		require.ErrorIs(t, <-failures, recipes.ErrLockLost)
		lost := time.Now()
		require.Greater(t, <-terms, first)
		require.LessOrEqual(t, time.Since(lost), time.Minute, "a tick was skipped")
		require.NoError(t, elector.IsLeader(t.Context()))
		require.NoError(t, latch.Close(t.Context()))
		require.ErrorIs(t, elector.IsLeader(t.Context()), gocronlock.ErrNotLeader)
		synctest.Wait()
		require.ErrorContains(t, elector.IsLeader(t.Context()), "was closed")
	})
}
