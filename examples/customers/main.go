// Command customers has jobs of many customers, in two processes: of each customer at
// most one job is done at a time. One job in ten fails once. pool.go says how.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper. Without it this process
// embeds one, zktest.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	sessionTimeout = 10 * time.Second
	processes      = 2
	slots          = 4 // of each process
	customers      = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "customers:", err)
		os.Exit(1)
	}
}

// run has some processes, until ctx is done or one of them fails.
func run(ctx context.Context) error {
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
	for n := range processes {
		go func() { ended <- process(ctx, servers, n) }()
	}
	var failed error
	for range processes {
		failed = errors.Join(failed, <-ended)
		cancel() // all end with the first
	}
	return failed
}

// process is what each process does, until ctx is done.
func process(ctx context.Context, servers string, n int) error {
	client, err := recipes.Connect(ctx, servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	p := newPool(client, slots)
	defer p.ended.Wait()
	for number := 1; ctx.Err() == nil; number++ {
		customer := fmt.Sprint("customer ", number%customers)
		fails := number%10 == 0
		p.submit(ctx, customer, func(ctx context.Context, token int64) error {
			if fails {
				fails = false // it is done again
				return fmt.Errorf("job %d of process %d failed", number, n)
			}
			fmt.Printf("%s: job %d of process %d, token %d\n", customer, number, n, token)
			pause(ctx, 50*time.Millisecond)
			return nil
		})
		pause(ctx, 100*time.Millisecond)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
