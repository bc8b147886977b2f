package recipes_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// exampleServers is a connect string such as "zk1:2181,zk2:2181,zk3:2181/app".
func exampleServers() (servers string, stop func()) {
	cluster, err := zkserver.Find(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return cluster.Connect() + "/example", func() { _ = cluster.Close() }
}

func Example() {
	servers, stop := exampleServers()
	defer stop()

	ctx := context.Background()
	client, err := recipes.Connect(ctx, servers, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := recipes.NewInterProcessMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	err = recipes.Do(ctx, lock, func(ctx context.Context) error {
		fmt.Println("only one process is here; ctx ends if the lock is lost")
		return ctx.Err()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: only one process is here; ctx ends if the lock is lost
}

func ExampleInterProcessMutex() {
	servers, stop := exampleServers()
	defer stop()

	ctx := recipes.WithOwner(context.Background()) // whoever has this ctx is the owner, on any goroutine
	client, err := recipes.Connect(ctx, servers, 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := recipes.NewInterProcessMutex(client, "/locks/ledger")
	if err != nil {
		log.Fatal(err)
	}
	held, err := lock.AcquireTimeout(ctx, time.Second)
	if err != nil || !held {
		log.Fatal("not held: ", err)
	}
	hold := lock.Hold(ctx)
	fmt.Println("re-enters:", lock.Acquire(ctx) == nil)
	fmt.Println("releases:", lock.Release(ctx) == nil, lock.Release(ctx) == nil)
	fmt.Println("was lost meanwhile:", hold.Err() != nil)
	// Output:
	// re-enters: true
	// releases: true true
	// was lost meanwhile: false
}
