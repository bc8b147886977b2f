package gocronlock_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gocronlock"
	"github.com/zkrecipes/recipes/zktest"
)

func connectTo(cluster *zktest.Cluster) *recipes.Client {
	client, err := recipes.Connect(
		context.Background(), cluster.ConnectString(), 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// The lock of a job is lost while the job runs.
func ExampleLockedTask() {
	cluster, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	client := connectTo(cluster)
	defer client.Close()
	locker, err := gocronlock.NewLocker(client, "/cron")
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		log.Fatal(err)
	}
	failed := make(chan error)
	_, err = scheduler.NewJob(
		gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		gocronlock.LockedTask(locker,
			func(ctx context.Context, hold *recipes.Hold) error {
				fmt.Println("the job runs, with a token:", hold.FencingToken() > 0)
				cluster.ExpireSession(client.SessionID()) // as an operator could
				<-ctx.Done()
				return context.Cause(ctx)
			}),
		gocron.WithName("report"),
		gocron.WithEventListeners(gocron.AfterJobRunsWithError(
			func(_ uuid.UUID, _ string, err error) { failed <- err })),
	)
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	fmt.Println("gocron receives", recipes.ErrLockLost, <-failed != nil)
	if err := scheduler.Shutdown(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// the job runs, with a token: true
	// gocron receives the lock was lost true
}

// A job every hour, counted from the start of each process: the first host runs it, the
// others skip it for 55 minutes.
func ExampleNewSpacedLocker() {
	cluster, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	client := connectTo(cluster)
	defer client.Close()
	locker, err := gocronlock.NewSpacedLocker(client, "/cron", 55*time.Minute)
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler()
	if err != nil {
		log.Fatal(err)
	}
	_, err = scheduler.NewJob(gocron.DurationJob(time.Hour),
		gocronlock.LockedTask(locker,
			func(context.Context, *recipes.Hold) error { return nil }),
		gocron.WithName("report"),
		gocron.WithDistributedJobLocker(locker)) // of this job alone
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(scheduler.Jobs()), "job")
	// Output: 1 job
}

// One host runs all jobs.
func ExampleNewElector() {
	cluster, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	client := connectTo(cluster)
	defer client.Close()
	latch, err := recipes.NewLeaderLatch(client, "/cron/leader")
	if err != nil {
		log.Fatal(err)
	}
	elector := gocronlock.NewElector(latch)
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		log.Fatal(err)
	}
	ran := make(chan bool, 100)
	_, err = scheduler.NewJob(gocron.DurationJob(10*time.Millisecond),
		gocronlock.LeaderTask(elector,
			func(_ context.Context, term *recipes.Hold) error {
				ran <- term.Err() == nil
				return nil
			}))
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	fmt.Println("this host leads:", <-ran)
	if err := scheduler.Shutdown(); err != nil { // before the latch
		log.Fatal(err)
	}
	if err := latch.Close(context.Background()); err != nil {
		log.Fatal(err)
	}
	// Output: this host leads: true
}
