package gocronlock_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gocronlock"
)

// serversOfHost makes this binary a host, and names its ZooKeeper.
const serversOfHost = "GOCRONLOCK_TEST_SERVERS"

// sessionTimeout is longer than a machine stands still: what ends a session is the test.
const sessionTimeout = 30 * time.Second

func TestMain(m *testing.M) {
	servers := os.Getenv(serversOfHost)
	if servers == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := beHost(ctx, servers, os.Getenv(electorOfHost) != ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// electorOfHost makes the host use an elector instead of a locker.
const electorOfHost = "GOCRONLOCK_TEST_ELECTOR"

// beHost runs a job that does not end by itself, and reports each step on a line.
func beHost(ctx context.Context, servers string, elects bool) error {
	client, err := recipes.Connect(ctx, servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	job := func(ctx context.Context, _ *recipes.Hold) error {
		fmt.Printf("begins %d\n", client.SessionID())
		<-ctx.Done()
		fmt.Printf("ends %d\n", client.SessionID())
		return nil // whatever it returns, the loss is reported
	}
	var option gocron.SchedulerOption
	var task gocron.Task
	if elects {
		latch, err := recipes.NewLeaderLatch(client, "/cron/leader")
		if err != nil {
			return err
		}
		elector := gocronlock.NewElector(latch)
		option = gocron.WithDistributedElector(elector)
		task = gocronlock.LeaderTask(elector, job)
	} else {
		locker, err := gocronlock.NewLocker(client, "/cron")
		if err != nil {
			return err
		}
		option = gocron.WithDistributedLocker(locker)
		task = gocronlock.LockedTask(locker, job)
	}
	scheduler, err := gocron.NewScheduler(option)
	if err != nil {
		return err
	}
	if _, err := scheduler.NewJob(
		gocron.DurationJob(200*time.Millisecond), task, gocron.WithName("report"),
		gocron.WithSingletonMode(gocron.LimitModeReschedule), // of this process
		gocron.WithEventListeners(gocron.AfterJobRunsWithError(
			func(_ uuid.UUID, _ string, err error) {
				fmt.Printf("failed %d %v\n", client.SessionID(), err)
			})),
	); err != nil {
		return err
	}
	scheduler.Start()
	<-ctx.Done()
	return scheduler.Shutdown()
}
