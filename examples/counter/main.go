// Command counter starts several worker processes that increment one counter in ZooKeeper
// under one lock. Only the lock protects the counter: a worker reads it, and writes it
// back. The total is exact only if no two workers ever held the lock at once.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper. Without it the parent
// embeds one, zktest, so that this runs on a machine with nothing but Go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	counterPath    = "/counter"
	lockPath       = "/counter-lock"
	sessionTimeout = 10 * time.Second
)

type job struct {
	workers, increments int
	worker              int           // which one this process is; 0 is the parent
	servers             string        // with the chroot of this run
	work                time.Duration // 0: no more than it takes
}

func main() {
	var j job
	flag.IntVar(&j.workers, "workers", 4, "worker `processes`")
	flag.IntVar(&j.increments, "increments", 100, "increments by each worker")
	flag.IntVar(&j.worker, "worker", 0, "be worker `n` (set by the parent)")
	flag.DurationVar(&j.work, "work", 0, "hold the lock for `DURATION` each time, and "+
		"go on after errors: for somebody who watches it under faults")
	flag.StringVar(&j.servers, "servers", "", "connect `string` (set by the parent)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	run := j.supervise
	if j.worker > 0 {
		run = j.runWorker
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "counter:", err)
		os.Exit(1)
	}
}

// findServers returns the connect string of the ZooKeeper to use, and says which one it
// is.
func findServers() (servers string, stop func(), err error) {
	if servers := os.Getenv("ZOOKEEPER_SERVERS"); servers != "" {
		fmt.Printf("ZooKeeper: %s, from ZOOKEEPER_SERVERS\n", servers)
		return servers, func() {}, nil
	}
	cluster, err := zktest.New()
	if err != nil {
		return "", nil, err
	}
	fmt.Printf(
		"ZooKeeper: %s, embedded (zktest; set ZOOKEEPER_SERVERS to use a real one)\n",
		cluster.ConnectString(),
	)
	return cluster.ConnectString(), cluster.Close, nil
}

// supervise starts the workers and checks what they have counted.
func (j job) supervise(ctx context.Context) error {
	if j.workers < 1 || j.increments < 1 {
		return errors.New("-workers and -increments must be 1 or more")
	}
	servers, stop, err := findServers()
	if err != nil {
		return err
	}
	defer stop()
	j.servers = fmt.Sprintf("%s/recipes-example-%d", servers, time.Now().UnixNano())
	client, err := recipes.Connect(ctx, j.servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Create(
		counterPath, []byte("0"), 0, zk.WorldACL(zk.PermAll),
	); err != nil {
		return fmt.Errorf("create %s: %w", counterPath, err)
	}
	began := time.Now()
	if err := j.runWorkers(ctx); err != nil {
		return err
	}
	data, _, err := client.Get(counterPath)
	if err != nil {
		return fmt.Errorf("get %s: %w", counterPath, err)
	}
	fmt.Printf(
		"%d workers x %d increments in %v: the counter is %s\n", j.workers, j.increments,
		time.Since(began).Round(time.Millisecond), data,
	)
	if want := strconv.Itoa(j.workers * j.increments); string(data) != want {
		return fmt.Errorf(
			"the counter is %s, not %s: two workers held the lock at once", data, want,
		)
	}
	fmt.Println("exact: nobody was in another's way")
	return nil
}

func (j job) runWorkers(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	for n := range j.workers {
		cmd := exec.CommandContext( //nolint:gosec // itself
			ctx, self, "-worker", strconv.Itoa(n+1), "-increments",
			strconv.Itoa(j.increments), "-servers", j.servers, "-work", j.work.String(),
		)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		go func() { ended <- cmd.Run() }()
	}
	var failed error
	for range j.workers {
		if err := <-ended; err != nil && failed == nil {
			failed = fmt.Errorf("a worker: %w", err)
			cancel()
		}
	}
	return failed
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// runWorker is one worker process.
func (j job) runWorker(ctx context.Context) error {
	client, err := recipes.Connect(ctx, j.servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := recipes.NewInterProcessMutex(client, lockPath)
	if err != nil {
		return err
	}
	for i := range j.increments {
		asked := time.Now()
		err := recipes.Do(ctx, lock, func(
			ctx context.Context, hold *recipes.Hold,
		) error {
			waited := time.Since(asked)
			n, err := increment(client)
			if err == nil && (i+1)%max(1, j.increments/5) == 0 {
				fmt.Printf("worker %d (pid %d): increment %3d of %d, counter %4d, "+
					"waited %v, fencing token %d\n", j.worker, os.Getpid(), i+1,
					j.increments, n, waited.Round(10*time.Microsecond),
					hold.FencingToken())
			}
			pause(ctx, j.work)
			return err
		})
		switch {
		case err == nil:
		case j.work == 0 || ctx.Err() != nil:
			return err
		default:
			fmt.Printf("worker %d (pid %d): %v\n", j.worker, os.Getpid(), err)
			pause(ctx, time.Second)
		}
	}
	return nil
}

// increment is not safe without the lock: the version of -1 lets any write through.
func increment(client *recipes.Client) (int, error) {
	data, _, err := client.Get(counterPath)
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", counterPath, err)
	}
	n, err := strconv.Atoi(string(data))
	if err != nil {
		return 0, fmt.Errorf("get %s: %w", counterPath, err)
	}
	if _, err := client.Set(counterPath, []byte(strconv.Itoa(n+1)), -1); err != nil {
		return 0, fmt.Errorf("set %s: %w", counterPath, err)
	}
	return n + 1, nil
}
