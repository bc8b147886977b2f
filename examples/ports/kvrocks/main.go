// Command kvrocks has the leader election of a controller twice: as it is often written
// by hand with go-zookeeper, and on this library. The network of the leader is cut. By
// hand it goes on as the leader, for as long as the network is cut, next to the one that
// was elected meanwhile. See README.md.
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
	leaderPath     = "/controller/leader"
	sessionTimeout = 6 * time.Second
)

// A controller is a candidate, which joins the election when it starts.
type controller interface {
	leads() bool // asked before each change of the cluster that it controls
	close()
}

// A start starts a controller that reaches the cluster through its own link.
type start func(
	ctx context.Context, cluster *zktest.Cluster, id string,
) (controller, error)

func main() {
	log.SetOutput(io.Discard) // of go-zookeeper, which logs each attempt to connect
	for _, way := range []struct {
		name  string
		start start
	}{{"by hand", byHand}, {"on recipes", onRecipes}} {
		two, err := cutTheLeader(context.Background(), way.start)
		if err != nil {
			fmt.Fprintln(os.Stderr, "kvrocks:", err)
			os.Exit(1)
		}
		fmt.Printf("%s: two leaders: %t\n", way.name, two)
	}
}

// cutTheLeader cuts the network of the leader until another one leads and a while has
// passed, and returns whether the first one leads then, too.
func cutTheLeader(ctx context.Context, begin start) (twoLeaders bool, err error) {
	cluster, err := zktest.New()
	if err != nil {
		return false, err
	}
	defer cluster.Close()
	first, err := begin(ctx, cluster, "first")
	if err != nil {
		return false, err
	}
	defer first.close()
	await(first.leads)
	second, err := begin(ctx, cluster, "second")
	if err != nil {
		return false, err
	}
	defer second.close()
	cluster.Link("first").Cut()
	defer cluster.Link("first").Heal()
	await(second.leads)
	time.Sleep(sessionTimeout)
	return first.leads() && second.leads(), nil
}

// await waits for what nothing reports.
func await(ok func() bool) {
	for !ok() {
		time.Sleep(10 * time.Millisecond)
	}
}
