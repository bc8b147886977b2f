// Command cron runs a job once per slot of time, on one of several hosts: on whichever
// comes first, and on another one if that one dies.
//
// With the lock alone the hosts would do the job one after another. So a mark in
// ZooKeeper says which slot was done last. A host reads it under the lock, and makes it
// when the job is done, in a transaction that ZooKeeper does only while the host holds
// the lock. If the lock is lost, the job has two seconds to stop before another host can
// begin; that one does all of it again.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper, for a process per host
// with -hosts 1. Without it this process embeds one, zktest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	lockPath       = "/cron-report-lock"
	markPath       = "/cron-report-last" // holds the slot that was done last
	sessionTimeout = 10 * time.Second
	timeToStop     = 2 * time.Second
	markLayout     = "2006-01-02T15:04:05.000Z" // of UTC: marks sort as text
)

func main() {
	every := flag.Duration("every", 10*time.Second, "how long a slot is")
	hosts := flag.Int("hosts", 3, "how many hosts this process plays")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *every, *hosts); err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

// run plays the hosts until ctx is done or one of them fails.
func run(ctx context.Context, every time.Duration, hosts int) error {
	if every < time.Millisecond || hosts < 1 {
		return errors.New("-every must be 1ms or more, and -hosts 1 or more")
	}
	servers := os.Getenv("ZOOKEEPER_SERVERS")
	if servers == "" {
		cluster, err := zktest.New()
		if err != nil {
			return err
		}
		defer cluster.Close()
		servers = cluster.ConnectString()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	for i := range hosts {
		h := host{name: fmt.Sprint(i + 1), every: every, job: report}
		go func() { ended <- h.connectAndRun(ctx, servers) }()
	}
	var failed error
	for range hosts {
		if err := <-ended; ctx.Err() == nil {
			failed = err
		}
		cancel() // all end with the first
	}
	return failed
}

// report is the job: it looks at its ctx often enough to stop within timeToStop.
func report(ctx context.Context, host string, slot time.Time) error {
	fmt.Printf("%s: host %s does it\n", slot.Format(time.TimeOnly), host)
	select {
	case <-time.After(time.Second): // the work
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A host takes part in the job.
type host struct {
	name   string
	client *recipes.Client
	every  time.Duration
	job    func(ctx context.Context, host string, slot time.Time) error
}

func (h host) connectAndRun(ctx context.Context, servers string) (err error) {
	if h.client, err = recipes.Connect(ctx, servers, sessionTimeout); err != nil {
		return err
	}
	defer h.client.Close()
	return h.run(ctx)
}

// run waits for each slot and takes part in it, until ctx is done. What goes wrong in one
// slot is logged, and the next one is another chance.
func (h host) run(ctx context.Context) error {
	lock, err := recipes.NewInterProcessMutex(h.client, lockPath,
		recipes.WithLossMargin(timeToStop), recipes.WithData([]byte(h.name)))
	if err != nil {
		return err
	}
	_, err = h.client.Create(markPath, nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("create %s: %w", markPath, err)
	}
	for {
		slot := time.Now().UTC().Truncate(h.every).Add(h.every)
		select {
		case <-time.After(time.Until(slot)):
		case <-ctx.Done():
			return nil
		}
		err := recipes.Do(ctx, lock, func(ctx context.Context, hold *recipes.Hold) error {
			return h.once(ctx, hold, slot)
		})
		if err != nil && ctx.Err() == nil {
			slog.Error("a slot failed", "host", h.name, "slot", slot, "error", err)
		}
	}
}

// once does the job if no host has done it in this slot.
func (h host) once(ctx context.Context, hold *recipes.Hold, slot time.Time) error {
	mark, _, err := h.client.Get(markPath)
	if err != nil {
		return fmt.Errorf("get %s: %w", markPath, err)
	}
	this := []byte(slot.Format(markLayout))
	if string(mark) >= string(this) {
		return nil // another host has done it
	}
	if err := h.job(ctx, h.name, slot); err != nil {
		return err
	}
	_, err = hold.Multi(&zk.SetDataRequest{Path: markPath, Data: this, Version: -1})
	return err
}
