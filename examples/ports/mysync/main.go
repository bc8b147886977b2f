// Command mysync has the lock of a manager twice: as it is often written by hand with
// go-zookeeper, an ephemeral znode that names its host and process id, and on this
// library. A manager is killed, and restarts in its container with the same process id.
// By hand it treats the znode of its dying session as its own. See README.md.
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
	lockPath       = "/manager"
	sessionTimeout = 4 * time.Second
	askEvery       = 100 * time.Millisecond
)

// A manager is a process that manages while it has the lock.
type manager interface {
	acquire() bool // asked at each step
	close()
}

// A start starts a manager that reaches the cluster through the link of the given name.
type start func(
	ctx context.Context, cluster *zktest.Cluster, link string, who identity,
) (manager, error)

// An identity is the host of a process and its id there: in a container always the same.
type identity struct {
	Host string
	PID  int
}

func main() {
	log.SetOutput(io.Discard) // of go-zookeeper, which logs each attempt to connect
	for _, way := range []struct {
		name  string
		start start
	}{{"by hand", byHand}, {"on recipes", onRecipes}} {
		both, err := restartTheManager(context.Background(), way.start)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mysync:", err)
			os.Exit(1)
		}
		fmt.Printf("%s: two managers: %d times in %v, asked every %v\n",
			way.name, both, 3*sessionTimeout, askEvery)
	}
}

// restartTheManager kills a manager and starts it again, next to another one. It returns
// how often both had the lock at once.
func restartTheManager(ctx context.Context, begin start) (both int, err error) {
	cluster, err := zktest.New()
	if err != nil {
		return 0, err
	}
	defer cluster.Close()
	one, other := identity{"db1", 1}, identity{"db2", 1}
	killed, err := begin(ctx, cluster, "killed", one)
	if err != nil {
		return 0, err
	}
	defer killed.close()
	for !killed.acquire() {
		time.Sleep(10 * time.Millisecond)
	}
	cluster.Link("killed").Cut() // so its session is not closed
	defer cluster.Link("killed").Heal()

	again, err := begin(ctx, cluster, "again", one)
	if err != nil {
		return 0, err
	}
	defer again.close()
	next, err := begin(ctx, cluster, "other", other)
	if err != nil {
		return 0, err
	}
	defer next.close()
	managed := false
	for until := time.Now().Add(3 * sessionTimeout); time.Now().Before(until); {
		a, b := again.acquire(), next.acquire()
		if a && b {
			both++
		}
		managed = managed || a || b
		time.Sleep(askEvery)
	}
	if !managed {
		return both, fmt.Errorf("nobody has managed for %s", 3*sessionTimeout)
	}
	return both, nil
}
