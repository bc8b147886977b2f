// Command cron runs a job once per slot of time, on one of several hosts. After an
// outage it catches up on the slots that were missed, in order, and on 100 at most.
//
// The lock alone would only let the hosts do the job one after another. So a mark in
// ZooKeeper names the slot that was done last. A host that acquires the lock reads the
// mark, and does each slot behind it that is due by the host's clock. It moves the mark
// when the job has returned, in a transaction that ZooKeeper does only while the host
// holds the lock.
//
// What is done exactly once per slot is that transaction: the mark, and the changes in
// ZooKeeper that the job returns. The job itself runs at least once. It runs again, here
// or on another host, if it fails, or if its host dies or loses the lock before the mark
// has moved. So what the job does elsewhere must tolerate a repetition: for example,
// write a row whose key is the slot, and let the database reject lower fencing tokens
// (docs/fencing.md). A slot that fails delays those behind it until it is done or too
// old.
//
// If the lock is lost in an outage, the job has two seconds to stop before another host
// can begin.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper, for a process per host
// with -hosts 1. Without it this process embeds one, zktest. With CRON_AUTH in the form
// "USER:PASSWORD" the hosts log in, and nobody else can write the mark, which would have
// slots left out, or join the queue. (To delete them takes a right on the root: see
// docs/secure-cluster.md.) A mark that is in the future is an error.
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
	madeUpFor      = 100                 // how many slots before the current one are
	sessionTimeout = 10 * time.Second
	timeToStop     = 2 * time.Second
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
		name := fmt.Sprint(i + 1)
		h := host{
			name: name, every: every, job: reportBy(name), auth: os.Getenv("CRON_AUTH"),
		}
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

// A job does the work of a slot under hold. It returns what ZooKeeper is to change along
// with the mark, if anything: operations for [recipes.Hold.Multi].
type job func(
	ctx context.Context, hold *recipes.Hold, slot time.Time,
) (changes []any, err error)

// reportBy returns the job of a host. It looks at its ctx often enough to stop within
// timeToStop.
func reportBy(name string) job {
	return func(ctx context.Context, _ *recipes.Hold, slot time.Time) ([]any, error) {
		fmt.Printf("%s: host %s does it\n", slot.Format(time.TimeOnly), name)
		select {
		case <-time.After(time.Second): // the work
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// A host takes part in the job.
type host struct {
	name   string
	client *recipes.Client
	every  time.Duration
	job    job
	auth   string // USER:PASSWORD, or ""
}

// acl gives all rights to those who log in as this host does.
func (h host) acl() []zk.ACL {
	if h.auth == "" {
		return zk.WorldACL(zk.PermAll)
	}
	return zk.AuthACL(zk.PermAll)
}

func (h host) connectAndRun(ctx context.Context, servers string) (err error) {
	var options []recipes.ClientOption
	if h.auth != "" {
		options = append(options, recipes.WithAuth("digest", []byte(h.auth)))
	}
	h.client, err = recipes.Connect(ctx, servers, sessionTimeout, options...)
	if err != nil {
		return err
	}
	defer h.client.Close()
	return h.run(ctx)
}

// run takes its turn in each slot, until ctx is done. What goes wrong in a turn is
// logged, and the next turn, here or on another host, makes up for it.
func (h host) run(ctx context.Context) error {
	lock, err := recipes.NewInterProcessMutex(h.client, lockPath,
		recipes.WithLossMargin(timeToStop), recipes.WithData([]byte(h.name)),
		recipes.WithACL(h.acl()))
	if err != nil {
		return err
	}
	// The first host of all leaves the slot out that has begun already.
	begun := markOf(time.Now().Truncate(h.every))
	_, err = h.client.Create(markPath, begun, 0, h.acl())
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("create %s: %w", markPath, err)
	}
	for {
		next := time.Now().Truncate(h.every).Add(h.every)
		select {
		case <-time.After(time.Until(next)):
		case <-ctx.Done():
			return nil
		}
		if err := recipes.Do(ctx, lock, h.turn); err != nil && ctx.Err() == nil {
			slog.Error("a turn failed", "host", h.name, "error", err)
		}
	}
}

// turn does the slots that are due. If the other hosts have done them, there are none.
func (h host) turn(ctx context.Context, hold *recipes.Hold) error {
	for ctx.Err() == nil {
		slot, err := h.next()
		if err != nil || slot.After(time.Now()) {
			return err
		}
		changes, err := h.job(ctx, hold, slot)
		if err != nil {
			return fmt.Errorf("slot %s: %w", markOf(slot), err)
		}
		mark := &zk.SetDataRequest{Path: markPath, Data: markOf(slot), Version: -1}
		if _, err := hold.Multi(append(changes, mark)...); err != nil {
			return fmt.Errorf("slot %s: %w", markOf(slot), err)
		}
	}
	return context.Cause(ctx)
}

// next returns the slot behind the mark, but none that is too old to be made up for. The
// clocks of the hosts may differ by a slot.
func (h host) next() (slot time.Time, err error) {
	mark, _, err := h.client.Get(markPath)
	if err != nil {
		return time.Time{}, fmt.Errorf("get %s: %w", markPath, err)
	}
	last, err := time.Parse(time.RFC3339Nano, string(mark))
	if err != nil {
		return time.Time{}, fmt.Errorf("the mark in %s: %w", markPath, err)
	}
	if ahead := time.Until(last); ahead > h.every {
		return time.Time{}, fmt.Errorf("the mark in %s, %s, is %v in the future: a "+
			"clock is wrong, or somebody else wrote it; set it to the slot that was "+
			"done last",
			markPath, mark, ahead.Round(time.Second))
	}
	slot = last.Truncate(h.every).Add(h.every)
	oldest := time.Now().UTC().Truncate(h.every).Add(-madeUpFor * h.every)
	if slot.Before(oldest) {
		slog.Warn("slots are left out", "host", h.name, "from", slot, "to", oldest)
		slot = oldest
	}
	return slot, nil
}

// markOf returns the mark that says that a slot was done.
func markOf(slot time.Time) []byte {
	return []byte(slot.UTC().Format(time.RFC3339Nano))
}
