// Command kitex has the registration of a service instance twice: as it is often written
// by hand with go-zookeeper, and on this library. Three things happen to it: another
// instance is started with the same name, and stopped; somebody deletes the znode; and it
// is deregistered during an outage that its session survives. See README.md.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

const (
	service        = "/api"
	instance       = service + "/10.0.0.1:8888"
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
			{"after a second one of its name has come and gone", secondOfItsName},
			{"after somebody has deleted its znode", deletedByOthers},
			{"after it was deregistered in an outage", deregisterInAnOutage},
		} {
			registered, err := s.scene(context.Background(), way.start)
			if err != nil {
				fmt.Fprintln(os.Stderr, "kitex:", err)
				os.Exit(1)
			}
			fmt.Printf("%s, %s: registered: %v\n", way.name, s.name, registered)
		}
	}
}

// secondOfItsName starts another instance with the same name, as a copied configuration
// does, and stops it again.
func secondOfItsName(ctx context.Context, begin start) (registered bool, err error) {
	return play(ctx, begin, func(cluster *zktest.Cluster, _ registry) error {
		second, err := begin(ctx, cluster, "second")
		if err != nil {
			return err
		}
		defer second.close()
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := second.register(within); err != nil {
			return nil // it is told that the name is taken
		}
		return second.deregister(ctx)
	})
}

// deletedByOthers deletes the znode, as an operator may who cleans up.
func deletedByOthers(ctx context.Context, begin start) (registered bool, err error) {
	return play(ctx, begin, func(cluster *zktest.Cluster, _ registry) error {
		conn, _, err := zk.Connect(cluster.Names(), sessionTimeout,
			zk.WithDialer(cluster.Link("operator").Dial), zk.WithLogInfo(false),
			zk.WithHostProvider(cluster.HostProvider()))
		if err != nil {
			return err
		}
		defer conn.Close()
		return conn.Delete(instance, -1)
	})
}

// deregisterInAnOutage deregisters the instance while its network is down, for as long as
// a caller waits. The network comes back before the session has ended.
func deregisterInAnOutage(ctx context.Context, begin start) (registered bool, err error) {
	return play(ctx, begin, func(cluster *zktest.Cluster, r registry) error {
		cluster.Link("service").Cut()
		time.Sleep(time.Second)
		within, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = r.deregister(within) // nobody can say more than that it is not confirmed
		cluster.Link("service").Heal()
		return nil
	})
}

// play registers the instance, lets something happen, and looks.
func play(
	ctx context.Context, begin start,
	happens func(*zktest.Cluster, registry) error,
) (registered bool, err error) {
	cluster, err := zktest.New()
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
	if err := happens(cluster, r); err != nil {
		return false, err
	}
	time.Sleep(3 * sessionTimeout)
	return slices.Contains(cluster.Znodes(), instance), nil
}
