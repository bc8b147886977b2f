// Command kratos has the registration of a service instance twice: as it is often written
// by hand with go-zookeeper, and on this library. Three things happen to it: its session
// ends, and the znode of the dying session is still there; the same on a server that
// resumes no session; and it is deregistered during an outage. See README.md.
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
	parent         = "/microservices/api"
	instance       = parent + "/host-7"
	address        = "grpc://10.0.0.1:9000"
	sessionTimeout = 10 * time.Second
)

// A registry registers one instance.
type registry interface {
	register(ctx context.Context) error
	deregister(ctx context.Context) error
	close()
}

// A start connects a registry to the cluster through the link of the given name.
type start func(
	ctx context.Context, cluster *zktest.Cluster, link string,
) (registry, error)

// A scene happens to an instance. It returns whether the instance is registered after
// that, as it stays.
type scene func(ctx context.Context, begin start) (registered bool, err error)

func main() {
	log.SetOutput(io.Discard) // of go-zookeeper, which logs each attempt to connect
	for _, way := range []struct {
		name  string
		start start
	}{{"by hand", byHand}, {"on recipes", onRecipes}} {
		for _, s := range []struct {
			name  string
			scene scene
		}{
			{"after a reconnect to Keeper", reconnectToKeeper},
			{"after it was deregistered in an outage", deregisterInAnOutage},
		} {
			registered, err := s.scene(context.Background(), way.start)
			if err != nil {
				fmt.Fprintln(os.Stderr, "kratos:", err)
				os.Exit(1)
			}
			fmt.Printf("%s, %s: registered: %v\n", way.name, s.name, registered)
		}
	}
}

// reconnectToKeeper breaks the connection to a server that resumes no session. The znode
// of the former session stays for as long as that one's timeout: it is a dying session.
func reconnectToKeeper(ctx context.Context, begin start) (registered bool, err error) {
	return play(ctx, begin, func(cluster *zktest.Cluster, _ registry) {
		cluster.Link("service").Reset()
		time.Sleep(3 * sessionTimeout) // the former session has ended
	}, zktest.WithKeeper())
}

// deregisterInAnOutage deregisters the instance while its network is down, for as long as
// a caller waits. The network comes back when the session has ended.
func deregisterInAnOutage(ctx context.Context, begin start) (registered bool, err error) {
	return play(ctx, begin, func(cluster *zktest.Cluster, r registry) {
		cluster.Link("service").Cut()
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = r.deregister(within) // nobody can say more than that it is not confirmed
		time.Sleep(2 * sessionTimeout)
		cluster.Link("service").Heal()
		time.Sleep(sessionTimeout)
	})
}

// play registers the instance, lets something happen, and looks.
func play(
	ctx context.Context, begin start, happens func(*zktest.Cluster, registry),
	opts ...zktest.Option,
) (registered bool, err error) {
	cluster, err := zktest.New(opts...)
	if err != nil {
		return false, err
	}
	defer cluster.Close()
	r, err := begin(ctx, cluster, "service")
	if err != nil {
		return false, err
	}
	defer r.close()
	if err := r.register(ctx); err != nil {
		return false, err
	}
	happens(cluster, r)
	for _, path := range cluster.Znodes() {
		registered = registered || path == instance
	}
	return registered, nil
}
