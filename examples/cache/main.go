// Command cache has readers that keep a price in memory, and one writer that changes it.
// Once a change is made, no reader uses the old price. While nobody writes, a read sends
// no requests. cache.go says how.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper. Without it this process
// embeds one, zktest.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	sessionTimeout = 10 * time.Second
	readers        = 3
)

func main() {
	every := flag.Duration("every", time.Second, "how often the price changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *every); err != nil {
		fmt.Fprintln(os.Stderr, "cache:", err)
		os.Exit(1)
	}
}

// run has a writer and some readers, until ctx is done or one of them fails.
func run(ctx context.Context, every time.Duration) error {
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
	for n := range 1 + readers {
		go func() { ended <- process(ctx, servers, n, every) }()
	}
	var failed error
	for range 1 + readers {
		if err := <-ended; ctx.Err() == nil {
			failed = err
		}
		cancel() // all end with the first
	}
	return failed
}

// process is what each process does; the first one is the writer.
func process(ctx context.Context, servers string, n int, every time.Duration) error {
	client, err := recipes.Connect(ctx, servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	c, err := newCache(client)
	if err != nil {
		return err
	}
	if n == 0 {
		return write(ctx, c, every)
	}
	return read(ctx, c, n)
}

// write changes the price now and then, until ctx is done.
func write(ctx context.Context, c *cache, every time.Duration) error {
	for price := 1; ; price++ {
		if err := c.change(ctx, strconv.Itoa(price)); err != nil {
			return err
		}
		fmt.Println("writer: the price is", price)
		pause(ctx, every)
	}
}

// read uses the price over and over, until ctx is done.
func read(ctx context.Context, c *cache, reader int) error {
	known := ""
	for reads := 1; ; reads++ {
		if err := c.use(ctx, func(_ context.Context, price string) error {
			if price != known {
				fmt.Printf("reader %d: finds %s with read %d\n", reader, price, reads)
				known = price
			}
			return nil
		}); err != nil {
			return err
		}
		pause(ctx, time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
