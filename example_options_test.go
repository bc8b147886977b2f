package recipes_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

func ExampleWithData() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ctx := recipes.WithOwner(context.Background())
	lock := must(recipes.NewInterProcessMutex(client, "/locks/named",
		recipes.WithData([]byte("report-7, started by cron"))))

	check(lock.Acquire(ctx))
	queue := must(recipes.Inspect(ctx, client, "/locks/named"))
	fmt.Printf("held by %s\n", queue[0].Data)
	check(lock.Release(ctx))
	// Output: held by report-7, started by cron
}

func ExampleWithACL() {
	servers, stop := exampleServers()
	defer stop()
	ctx := recipes.WithOwner(context.Background())
	client := must(recipes.Connect(ctx, servers, 10*time.Second,
		recipes.WithAuth("digest", []byte("reports:secret"))))
	defer client.Close()
	lock := must(recipes.NewInterProcessMutex(client, "/locks/private",
		recipes.WithACL(zk.AuthACL(zk.PermAll)))) // for whoever has that user's password

	check(lock.Acquire(ctx))
	fmt.Println("held")
	check(lock.Release(ctx))
	// Output: held
}

func ExampleWithOwner() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	lock := must(recipes.NewInterProcessMutex(client, "/locks/owned"))

	ctx := recipes.WithOwner(context.Background())
	check(lock.Acquire(ctx))
	released := make(chan error)
	go func() { released <- lock.Release(ctx) }() // the same owner, on another goroutine
	fmt.Println(<-released)
	// Output: <nil>
}

func ExampleWithCaching() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ctx := recipes.WithOwner(context.Background())
	lock := must(recipes.NewInterProcessMutex(client, "/locks/cached",
		recipes.WithCaching(10*time.Second, 16)))

	var nodes []string
	for range 3 {
		check(lock.Acquire(ctx))
		nodes = append(nodes, lock.LockPath(ctx))
		check(lock.Release(ctx)) // the znode stays, until somebody else wants the lock
	}
	fmt.Println(nodes[0] == nodes[2])
	// Output: true
}

func ExampleWithLossMargin() {
	client, stop := exampleClient() // of a session timeout of ten seconds
	defer stop()
	defer client.Close()
	ctx := context.Background()
	lock := must(recipes.NewInterProcessMutex(client, "/locks/machine",
		recipes.WithLossMargin(2*time.Second)))

	check(recipes.Do(ctx, lock, func(ctx context.Context, _ *recipes.Hold) error {
		// When ctx ends because ZooKeeper is out of reach there are two seconds left in
		// which to stop the machine.
		fmt.Println("running:", ctx.Err() == nil)
		return nil
	}))
	// Output: running: true
}

func ExampleWithNames() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ctx := recipes.WithOwner(context.Background())
	lock := must(recipes.NewInterProcessMutex(client, "/locks/python",
		recipes.WithNames("__lock__"))) // what kazoo calls the znodes of its Lock
	check(lock.Acquire(ctx))
	check(lock.Release(ctx))

	_ = must(client.Create("/locks/python/0123456789abcdef0123456789abcdef__lock__",
		nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll)))
	ok := must(lock.AcquireTimeout(ctx, 0))
	fmt.Println("ours, while Python has it:", ok)
	// Output: ours, while Python has it: false
}

func ExampleWithClientObserver() {
	servers, stop := exampleServers()
	defer stop()
	ctx := context.Background()
	seen := make(chan recipes.SessionEvent, 16)
	client := must(recipes.Connect(ctx, servers, 10*time.Second,
		recipes.WithClientObserver(func(e recipes.SessionEvent) { seen <- e })))
	first := <-seen
	fmt.Println(first.Kind, first.Session == client.SessionID(), first.Timeout)
	client.Close()
	fmt.Println((<-seen).Kind)
	// Output:
	// connected true 10s
	// closed
}

func ExampleWithSessionTimeout() {
	servers, stop := exampleServers()
	defer stop()
	host, _, _ := strings.Cut(servers, "/")
	conn, _, err := zk.Connect(strings.Split(host, ","), 10*time.Second,
		zk.WithLogInfo(false))
	check(err)
	defer conn.Close()
	ctx := context.Background()
	lock := must(recipes.NewInterProcessMutex(conn, "/locks/bare",
		recipes.WithSessionTimeout(10*time.Second))) // what the servers have granted

	check(recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error {
		fmt.Println("held")
		return nil
	}))
	// Output: held
}

func ExampleWithTLS() {
	authority := x509.NewCertPool()
	authority.AppendCertsFromPEM(must(os.ReadFile("zookeeper-ca.pem")))
	client := must(recipes.Connect(context.Background(), "zk1:2281", 10*time.Second,
		recipes.WithTLS(&tls.Config{RootCAs: authority})))
	defer client.Close()
}

func ExampleInterProcessMutex_WatchParticipants() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ctx := recipes.WithOwner(context.Background())
	lock := must(recipes.NewInterProcessMutex(client, "/locks/watched",
		recipes.WithData([]byte("report-7"))))
	check(lock.Acquire(ctx))

	for queue, err := range lock.WatchParticipants(ctx) {
		check(err)
		fmt.Printf("%s holds it, %d wait\n", queue[0].Data, len(queue)-1)
		break // else again at each change
	}
	check(lock.Release(ctx))
	// Output: report-7 holds it, 0 wait
}
