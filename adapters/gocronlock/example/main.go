// Command example runs a job under gocron every two seconds, on one of several hosts.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper, for one process per host
// with -hosts 1. Without it this process embeds one, zktest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gocronlock"
	"github.com/zkrecipes/recipes/zktest"
)

func main() {
	hosts := flag.Int("hosts", 3, "how many hosts this process plays")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *hosts); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// run plays the hosts until ctx is done, or one of them cannot start.
func run(ctx context.Context, hosts int) error {
	servers := os.Getenv("ZOOKEEPER_SERVERS")
	if servers == "" {
		cluster, err := zktest.New()
		if err != nil {
			return err
		}
		defer cluster.Close()
		servers = cluster.ConnectString()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error)
	for i := range hosts {
		go func() {
			name := fmt.Sprintf("host %d of process %d", i+1, os.Getpid())
			err := host(ctx, servers, name)
			cancel(err) // all end with the first
			ended <- err
		}()
	}
	var errs []error
	for range hosts {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// host runs a scheduler until ctx is done.
func host(ctx context.Context, servers, name string) error {
	client, err := recipes.Connect(ctx, servers, 10*time.Second)
	if err != nil {
		return err
	}
	defer client.Close()
	locker, err := gocronlock.NewLocker(client, "/cron")
	if err != nil {
		return err
	}
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return err
	}
	report := func(ctx context.Context, hold *recipes.Hold) error {
		fmt.Printf("%s: the report, by %s, token %d\n",
			time.Now().Format(time.TimeOnly), name, hold.FencingToken())
		select {
		case <-time.After(time.Second): // the work
			return nil
		case <-ctx.Done(): // the lock is lost, or the scheduler shuts down
			return context.Cause(ctx)
		}
	}
	failed := func(_ uuid.UUID, job string, err error) {
		fmt.Println(job, "failed:", err)
	}
	_, err = scheduler.NewJob(
		gocron.CronJob("*/2 * * * * *", true),
		gocronlock.LockedTask(locker, report),
		gocron.WithName("report"), // the same on all hosts
		gocron.WithEventListeners(gocron.AfterJobRunsWithError(failed)),
	)
	if err != nil {
		return err
	}
	scheduler.Start()
	<-ctx.Done()
	return scheduler.Shutdown()
}
