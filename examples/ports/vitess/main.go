// Command vitess has the lock around a change of several steps twice: as it is often
// written by hand with go-zookeeper, and on this library. The holder checks its lock
// before each step. Its network is cut in the middle. By hand the check still passes when
// another process has the lock. See README.md.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/zkrecipes/recipes/zktest"
)

const (
	lockPath       = "/keyspaces/commerce/locks"
	sessionTimeout = 10 * time.Second
)

// A held lock can be checked before each step of the work.
type held interface {
	check() error
	unlock(ctx context.Context) error
}

// A process connects on its own and acquires the lock.
type process interface {
	lock(ctx context.Context) (held, error)
	close()
}

// A start starts a process that reaches the cluster through the link of the given name.
type start func(
	ctx context.Context, cluster *zktest.Cluster, link string,
) (process, error)

func main() {
	log.SetOutput(io.Discard) // of go-zookeeper, which logs each attempt to connect
	for _, way := range []struct {
		name  string
		start start
	}{{"by hand", byHand}, {"on recipes", onRecipes}} {
		checked, err := cutTheHolder(context.Background(), way.start)
		if err != nil {
			fmt.Fprintln(os.Stderr, "vitess:", err)
			os.Exit(1)
		}
		fmt.Printf("%s: the check of the former holder: %v\n", way.name, checked)
	}
}

// cutTheHolder cuts the network of a holder until another process has the lock, and
// returns what the check of the first one returns then.
func cutTheHolder(ctx context.Context, begin start) (checked error, err error) {
	cluster, err := zktest.New()
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	first, err := begin(ctx, cluster, "first")
	if err != nil {
		return nil, err
	}
	defer first.close()
	mine, err := first.lock(ctx)
	if err != nil {
		return nil, err
	}
	second, err := begin(ctx, cluster, "second")
	if err != nil {
		return nil, err
	}
	defer second.close()
	if err := mine.check(); err != nil {
		return nil, fmt.Errorf("before the outage: %w", err)
	}
	cluster.Link("first").Cut()
	defer cluster.Link("first").Heal()
	theirs, err := second.lock(ctx)
	if err != nil {
		return nil, err
	}
	checked = mine.check()
	return checked, theirs.unlock(ctx)
}
