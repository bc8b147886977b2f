// Command migrate has the same code with zk.Lock of go-zookeeper and with this library,
// one below the other: before and after. Both queue for the same lock, so a fleet can
// migrate process by process. Here one session uses zk.Lock and another one this library.
// Both increment one counter, which only the lock protects, and no increment is lost.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper. Without it this process
// embeds one, zktest. All differences are in docs/migrating-zk-lock.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	lockPath       = "/migrate-lock"
	countPath      = "/migrate-counter"
	sessionTimeout = 10 * time.Second // as the servers grant it
)

var acl = zk.WorldACL(zk.PermAll)

// before works under a zk.Lock. Nothing bounds the wait, ctx neither; and where the
// session ends in the middle of the work nobody is told.
func before(_ context.Context, conn *zk.Conn) error {
	lock := zk.NewLock(conn, lockPath, acl)
	if err := lock.Lock(); err != nil {
		return err
	}
	return errors.Join(add(conn), lock.Unlock())
}

// after works under a lock of this library, on the same connection. The wait ends with
// ctx, or after a minute. Where the lock is lost the work's ctx ends, in time.
func after(ctx context.Context, conn *zk.Conn) error {
	lock, err := recipes.NewInterProcessMutex(conn, lockPath,
		recipes.WithACL(acl), recipes.WithSessionTimeout(sessionTimeout))
	if err != nil {
		return err
	}
	return recipes.Do(ctx, lock, func(ctx context.Context, _ *recipes.Hold) error {
		if err := add(conn); err != nil {
			return err
		}
		return context.Cause(ctx)
	}, recipes.WaitAtMost(time.Minute))
}

// add is the work: not safe without the lock, since the version of -1 lets any write
// through. A write that must not come too late is made with hold.Multi.
func add(conn *zk.Conn) error {
	data, _, err := conn.Get(countPath)
	if err != nil {
		return fmt.Errorf("get %s: %w", countPath, err)
	}
	n, err := strconv.Atoi(string(data))
	if err != nil {
		return fmt.Errorf("get %s: %w", countPath, err)
	}
	if _, err := conn.Set(countPath, []byte(strconv.Itoa(n+1)), -1); err != nil {
		return fmt.Errorf("set %s: %w", countPath, err)
	}
	return nil
}

func main() {
	times := flag.Int("times", 100, "how often each of the two works")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *times); err != nil {
		fmt.Fprintln(os.Stderr, "migrate:", err)
		os.Exit(1)
	}
}

// run has both work at once, and checks what they have counted.
func run(ctx context.Context, times int) error {
	servers := os.Getenv("ZOOKEEPER_SERVERS")
	if servers == "" {
		cluster, err := zktest.New()
		if err != nil {
			return err
		}
		defer cluster.Close()
		servers = cluster.ConnectString()
	}
	conn, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Create(countPath, []byte("0"), zk.FlagEphemeral, acl); err != nil {
		return fmt.Errorf("create %s: %w", countPath, err)
	}
	ended := make(chan error)
	go func() { ended <- repeat(ctx, servers, times, before) }()
	go func() { ended <- repeat(ctx, servers, times, after) }()
	if err := errors.Join(<-ended, <-ended); err != nil {
		return err
	}
	data, _, err := conn.Get(countPath)
	if err != nil {
		return fmt.Errorf("get %s: %w", countPath, err)
	}
	fmt.Printf("%d times before, %d times after: the counter is %s\n", times, times, data)
	if string(data) != strconv.Itoa(2*times) {
		return fmt.Errorf("the counter is not %d: two held the lock at once", 2*times)
	}
	return nil
}

// repeat is what a process does, before or after.
func repeat(
	ctx context.Context, servers string, times int,
	work func(ctx context.Context, conn *zk.Conn) error,
) error {
	conn, err := connect(ctx, servers)
	if err != nil {
		return err
	}
	defer conn.Close()
	for range times {
		if err := work(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// connect returns a connection that ends with ctx: nothing else ends the wait of zk.Lock.
func connect(ctx context.Context, servers string) (*zk.Conn, error) {
	hosts := strings.Split(servers, ",")
	conn, _, err := zk.Connect(hosts, sessionTimeout, zk.WithLogInfo(false))
	if err == nil {
		context.AfterFunc(ctx, conn.Close)
	}
	return conn, err
}
