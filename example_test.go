package recipes_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// exampleServers is a connect string such as "zk1:2181,zk2:2181,zk3:2181/app".
func exampleServers() (servers string, stop func()) {
	cluster, err := zkserver.Find(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	return cluster.Connect() + "/example", func() { _ = cluster.Close() }
}

// exampleClient is a Client as Example makes it.
func exampleClient() (client *recipes.Client, stop func()) {
	servers, stop := exampleServers()
	return must(recipes.Connect(context.Background(), servers, 10*time.Second)), stop
}

// check ends the program that an example stands for.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func Example() {
	servers, stop := exampleServers()
	defer stop()

	ctx := context.Background()
	client, err := recipes.Connect(ctx, servers, 10*time.Second,
		recipes.WithClientLogger(slog.Default())) // by default nothing is logged
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	lock, err := recipes.NewInterProcessMutex(client, "/locks/report")
	if err != nil {
		log.Fatal(err)
	}
	err = recipes.Do(ctx, lock, func(ctx context.Context, hold *recipes.Hold) error {
		log.Printf("each write takes fencing token %d along", hold.FencingToken())
		fmt.Println("only one process is here; ctx ends if the lock is lost")
		return context.Cause(ctx)
	}, recipes.WaitAtMost(time.Minute))
	if errors.Is(err, recipes.ErrBusy) {
		fmt.Println("another process is at it")
	} else if err != nil {
		log.Fatal(err)
	}
	// Output: only one process is here; ctx ends if the lock is lost
}

// Where a wait stood that WaitAtMost or ctx has ended.
func ExampleBusyError() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	lock := must(recipes.NewInterProcessMutex(client, "/locks/report"))
	hold := must(recipes.Acquire(ctx, lock))
	_, err := recipes.Acquire(ctx, lock, recipes.WaitAtMost(0))
	var busy *recipes.BusyError
	if errors.As(err, &busy) {
		fmt.Println(busy.Path, "is busy:", busy.Ahead, "ahead")
		fmt.Println("behind the holder:", busy.Behind == hold.Path())
	}
	check(hold.Release(ctx))
	// Output:
	// /locks/report is busy: 1 ahead
	// behind the holder: true
}

func ExampleInterProcessMutex() {
	servers, stop := exampleServers()
	defer stop()

	// whoever has this ctx is the owner, on any goroutine
	ctx := recipes.WithOwner(context.Background())
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

func ExampleInterProcessSemaphoreMutex() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	lock := must(recipes.NewInterProcessSemaphoreMutex(client, "/locks/import"))
	check(lock.Acquire(ctx))
	again := must(lock.AcquireTimeout(ctx, 0))
	fmt.Println("re-enters:", again)

	released := make(chan error)
	go func() { released <- lock.Release(ctx) }() // it has no owner: any goroutine may
	check(<-released)
	fmt.Println("held:", lock.IsAcquiredInThisProcess())
	// Output:
	// re-enters: false
	// held: false
}

func ExampleInterProcessReadWriteLock() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	alice := recipes.WithOwner(context.Background())
	bob := recipes.WithOwner(context.Background())
	lock := must(recipes.NewInterProcessReadWriteLock(client, "/locks/catalogue"))
	read, write := lock.ReadLock(), lock.WriteLock()

	check(read.Acquire(alice))
	check(read.Acquire(bob))
	fmt.Println("both read:", read.IsOwned(alice), read.IsOwned(bob))
	fmt.Println("refused:", errors.Is(write.Acquire(alice), recipes.ErrUpgrade))
	check(read.Release(alice))
	fmt.Println("writes beside a reader:", must(write.AcquireTimeout(alice, 0)))
	check(read.Release(bob))
	// Output:
	// both read: true true
	// refused: true
	// writes beside a reader: false
}

// A writer goes on as a reader, with no other writer in between.
func ExampleInterProcessReadWriteLock_downgrade() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := recipes.WithOwner(context.Background())
	other := recipes.WithOwner(context.Background())
	lock := must(recipes.NewInterProcessReadWriteLock(client, "/locks/index"))

	check(lock.WriteLock().Acquire(ctx))
	written := lock.WriteLock().Hold(ctx).FencingToken()
	check(lock.ReadLock().Acquire(ctx)) // at once
	check(lock.WriteLock().Release(ctx))

	fmt.Println("the token stays:", lock.ReadLock().Hold(ctx).FencingToken() == written)
	fmt.Println(
		"another reads:", must(lock.ReadLock().AcquireTimeout(other, time.Second)),
	)
	check(lock.ReadLock().Release(other))
	fmt.Println("another writes:", must(lock.WriteLock().AcquireTimeout(other, 0)))
	check(lock.ReadLock().Release(ctx))
	// Output:
	// the token stays: true
	// another reads: true
	// another writes: false
}

func ExampleInterProcessSemaphoreV2() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	semaphore := must(
		recipes.NewInterProcessSemaphoreV2(client, "/semaphores/licences", 3),
	)

	two := must(semaphore.AcquireN(ctx, 2)) // both or none
	one := must(semaphore.Acquire(ctx))
	fmt.Println("a fourth:", must(semaphore.AcquireTimeout(ctx, 1, 0)) != nil)

	check(one.Release(ctx))
	check(semaphore.ReturnAll(ctx, two))
	fmt.Println("left:", len(must(semaphore.ParticipantNodes(ctx))))
	// Output:
	// a fourth: false
	// left: 0
}

// The maximum is in a znode, which Curator's SharedCount may change as well.
func ExampleNewInterProcessSemaphoreV2Shared() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	check(recipes.SetSharedCount(ctx, client, "/semaphores/workers-max", 1))
	semaphore := must(recipes.NewInterProcessSemaphoreV2Shared(
		client, "/semaphores/workers", "/semaphores/workers-max",
	))

	first := must(semaphore.Acquire(ctx))
	fmt.Println("a second of one:", must(semaphore.AcquireTimeout(ctx, 1, 0)) != nil)
	check(recipes.SetSharedCount(ctx, client, "/semaphores/workers-max", 2))
	second := must(semaphore.Acquire(ctx))
	fmt.Println("a second of two:", second.Err() == nil)
	check(semaphore.ReturnAll(ctx, []*recipes.Lease{first, second}))
	// Output:
	// a second of one: false
	// a second of two: true
}

func ExampleInterProcessMultiLock() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := recipes.WithOwner(context.Background())
	other := recipes.WithOwner(context.Background())
	from := must(recipes.NewInterProcessMutex(client, "/locks/account-1"))
	to := must(recipes.NewInterProcessMutex(client, "/locks/account-2"))
	both := recipes.NewInterProcessMultiLockOf(from, to) // in the same order everywhere

	check(to.Acquire(other))
	fmt.Println(
		"both:", must(both.AcquireTimeout(ctx, 0)), "one of them:", from.IsOwned(ctx),
	)
	check(to.Release(other))

	// Each account's store takes the token of the lock that guards it.
	check(recipes.Do(ctx, both, func(ctx context.Context, _ *recipes.Hold) error {
		for _, hold := range both.Holds(ctx) {
			fmt.Println(
				path.Dir(hold.Path()), "moves money with a token:",
				hold.FencingToken() > 0,
			)
		}
		return context.Cause(ctx)
	}))
	// Output:
	// both: false one of them: false
	// /locks/account-1 moves money with a token: true
	// /locks/account-2 moves money with a token: true
}

func ExampleDo() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	lock := must(recipes.NewInterProcessMutex(client, "/locks/billing"))
	failed := errors.New("no paper")
	err := recipes.Do(context.Background(), lock, func(
		ctx context.Context, hold *recipes.Hold,
	) error {
		fmt.Println("fn's ctx carries the owner:", lock.IsOwned(ctx))
		fmt.Println("held with a token:", hold.FencingToken() > 0)
		return failed
	}, recipes.WaitAtMost(10*time.Second))
	fmt.Println("fn's error:", errors.Is(err, failed))
	fmt.Println("the lock was lost:", errors.Is(err, recipes.ErrLockLost))
	fmt.Println("held:", lock.IsAcquiredInThisProcess())
	// Output:
	// fn's ctx carries the owner: true
	// held with a token: true
	// fn's error: true
	// the lock was lost: false
	// held: false
}

// A hold that ends on another goroutine than the one that acquired it.
func ExampleAcquire() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	lock := must(recipes.NewInterProcessMutex(client, "/locks/upload"))
	hold := must(recipes.Acquire(ctx, lock, recipes.WaitAtMost(10*time.Second)))
	_, err := recipes.Acquire(ctx, lock, recipes.WaitAtMost(0)) // another owner
	fmt.Println("held twice:", !errors.Is(err, recipes.ErrBusy))

	released := make(chan error)
	go func() {
		within := hold.Context(ctx) // ends when the lock is lost or released
		fmt.Println("with a token:", hold.FencingToken() > 0)
		inner := must(recipes.Acquire(within, lock))
		fmt.Println("re-enters:", inner.Path() == hold.Path())
		check(inner.Release(ctx))
		released <- hold.Release(ctx)
	}()
	check(<-released)
	fmt.Println("held:", lock.IsAcquiredInThisProcess())
	// Output:
	// held twice: false
	// with a token: true
	// re-enters: true
	// held: false
}

// A list of holds of several kinds of locks, which are released by one loop.
func ExampleHold_Release() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	mutex := must(recipes.NewInterProcessMutex(client, "/locks/orders"))
	rw := must(recipes.NewInterProcessReadWriteLock(client, "/locks/prices"))
	semaphore := must(recipes.NewInterProcessSemaphoreV2(client, "/semaphores/jobs", 4))
	single := must(recipes.NewInterProcessSemaphoreMutex(client, "/locks/mail"))
	multi := must(recipes.NewInterProcessMultiLock(
		client, []string{"/locks/stock", "/locks/cash"},
	))
	var holds []*recipes.Hold
	for _, lock := range []recipes.InterProcessLock{
		mutex, rw.ReadLock(), single, semaphore.AsLock(2), multi,
	} {
		holds = append(holds, must(recipes.Acquire(ctx, lock)))
	}
	hold := must(recipes.Acquire(ctx, rw.ReadLock())) // readers share it
	check(hold.Release(ctx))

	for _, hold := range holds {
		check(hold.Release(ctx))
	}
	err := holds[0].Release(ctx)
	fmt.Println("a second release:", errors.Is(err, recipes.ErrNotOwner))
	fmt.Println("held:", mutex.IsAcquiredInThisProcess())
	// Output:
	// a second release: true
	// held: false
}

// A job takes two of four licences and the lock of its account, or nothing.
func ExampleInterProcessSemaphoreV2_AsLock() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	semaphore := must(
		recipes.NewInterProcessSemaphoreV2(client, "/semaphores/licences", 4),
	)
	account := must(recipes.NewInterProcessMutex(client, "/locks/account-1"))
	licences := semaphore.AsLock(2)
	both := recipes.NewInterProcessMultiLockOf(account, licences)
	check(recipes.Do(ctx, both, func(ctx context.Context, _ *recipes.Hold) error {
		fmt.Println("in use:", len(must(semaphore.ParticipantNodes(ctx))))
		more := must(recipes.Acquire(ctx, licences)) // two more: it is not reentrant
		_, err := recipes.Acquire(ctx, licences, recipes.WaitAtMost(0))
		fmt.Println("all are in use:", errors.Is(err, recipes.ErrBusy))
		return more.Release(ctx)
	}))
	fmt.Println("in use:", len(must(semaphore.ParticipantNodes(ctx))))
	// Output:
	// in use: 2
	// all are in use: true
	// in use: 0
}

// Once a day, on one of several hosts. With the lock alone they do it one after another.
func ExampleDo_once() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx, today := context.Background(), "2026-02-03"
	_, err := client.Create("/last-report", nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		log.Fatal(err)
	}
	for _, host := range []string{"one", "two"} { // each in a process of its own
		lock := must(recipes.NewInterProcessMutex(client, "/locks/daily-report"))
		check(recipes.Do(ctx, lock, func(_ context.Context, hold *recipes.Hold) error {
			last, _, err := client.Get("/last-report")
			if err != nil {
				return err
			}
			if string(last) == today {
				fmt.Println("host", host, "finds it done")
				return nil
			}
			fmt.Println("host", host, "does it")
			// After the work: a host that dies before that leaves it to the next one. The
			// mark is made only while the lock is held.
			_, err = hold.Multi(&zk.SetDataRequest{
				Path: "/last-report", Data: []byte(today), Version: -1,
			})
			return err
		}))
	}
	// Output:
	// host one does it
	// host two finds it done
}

// A gauge of holds counts each znode once: a release that was not confirmed can be
// followed by the news of a loss.
func ExampleWithObserver() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	var mu sync.Mutex
	held := map[string]bool{}
	observe := func(_ context.Context, e recipes.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Kind {
		case recipes.EventAcquired:
			held[e.Node] = true
		case recipes.EventReleased, recipes.EventLost:
			delete(held, e.Node)
		}
		fmt.Printf("%s %s: %v, %d held\n", e.Recipe, e.Path, e.Kind, len(held))
	}

	ctx := context.Background()
	lock := must(recipes.NewInterProcessMutex(client, "/locks/observed",
		recipes.WithObserver(observe)))
	check(lock.Acquire(ctx))
	check(lock.Release(ctx))
	// Output:
	// mutex /locks/observed: queued, 0 held
	// mutex /locks/observed: acquired, 1 held
	// mutex /locks/observed: released, 0 held
}

// Each candidate leads in its turn, for as long as lead runs. This one wants two terms.
func ExampleLeaderSelector() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	selector := must(recipes.NewLeaderSelector(client, "/elections/report",
		recipes.WithData([]byte("host 1")))) // names the candidate
	enough := errors.New("led often enough")
	terms, token := 0, int64(0)
	err := selector.Run(ctx, func(ctx context.Context, term *recipes.Hold) error {
		leader, _, err := selector.Leader(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%s leads, with a greater token: %v\n", leader.Data,
			term.FencingToken() > token)
		token = term.FencingToken()
		if terms++; terms == 2 {
			return enough // ends Run
		}
		return context.Cause(ctx) // nil: queues anew. ctx ends if the term is lost.
	})
	fmt.Println(errors.Is(err, enough))
	// Output:
	// host 1 leads, with a greater token: true
	// host 1 leads, with a greater token: true
	// true
}

// A server that is active while it leads, and stands by else.
func ExampleLeaderLatch() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	latch := must(recipes.NewLeaderLatch(client, "/elections/active"))
	serve := func(ctx context.Context) error {
		fmt.Println("active:", latch.HasLeadership())
		return context.Cause(ctx) // serves until ctx is done, which tells the loss, too
	}
	term := must(latch.Await(ctx))
	if err := serve(term.Context(ctx)); err != nil { // comes to its end before Close
		log.Print(err) // of a loss: Await leads again, once serve has ended
	}
	check(latch.Close(ctx))
	fmt.Println("active:", latch.HasLeadership())
	// Output:
	// active: true
	// active: false
}

// Who leads: now, and at each change.
func ExampleLeaderLatch_Leaders() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	latch := must(recipes.NewLeaderLatch(client, "/elections/watched",
		recipes.WithData([]byte("host 1"))))
	for leader, err := range latch.Leaders(ctx) {
		switch {
		case err != nil: // no retry mends it, and the loop ends
			log.Print(err)
		case leader.Node == "":
			fmt.Println("nobody leads")
			must(latch.Await(ctx))
			continue
		default:
			fmt.Printf("%s leads\n", leader.Data)
		}
		break
	}
	check(latch.Close(ctx))
	// Output:
	// nobody leads
	// host 1 leads
}

// Who holds a lock, and who waits: for whatever recipe uses a path.
func ExampleInspect() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	lock := must(recipes.NewInterProcessReadWriteLock(client, "/locks/seen",
		recipes.WithData([]byte("host 1")))).ReadLock()
	holds := []*recipes.Hold{
		must(recipes.Acquire(ctx, lock)), must(recipes.Acquire(ctx, lock)),
	}
	for _, p := range must(recipes.Inspect(ctx, client, "/locks/seen")) {
		fmt.Printf("%s of %s, holding: %v, by this session: %v\n",
			p.Kind, p.Data, p.Holding, p.Session == client.SessionID())
	}
	for _, hold := range holds {
		check(hold.Release(ctx))
	}
	// Output:
	// read of host 1, holding: true, by this session: true
	// read of host 1, holding: true, by this session: true
}

// A tracingConn tells how long each delete takes.
type tracingConn struct {
	recipes.Conn
	trace func(operation string, took time.Duration)
}

// Unwrap leads to what Conn's methods do not tell: the session timeout above all.
func (c *tracingConn) Unwrap() recipes.Conn { return c.Conn }

func (c *tracingConn) Delete(path string, version int32) error {
	began := time.Now()
	defer func() { c.trace("delete", time.Since(began)) }()
	return c.Conn.Delete(path, version)
}

// A wrapper of a Client that traces its requests.
func ExampleConn() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	conn := &tracingConn{client, func(operation string, took time.Duration) {
		fmt.Println("traced:", operation, took > 0)
	}}
	ctx := context.Background()
	lock := must(recipes.NewInterProcessMutex(conn, "/locks/traced"))
	check(lock.Acquire(ctx))
	_, err := lock.Hold(ctx).Multi()
	fmt.Println("still held:", err == nil)
	check(lock.Release(ctx))
	// Output:
	// still held: true
	// traced: delete true
}

func ExampleAttemptRevoke() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := recipes.WithOwner(context.Background())
	lock := must(recipes.NewInterProcessMutex(client, "/locks/batch"))
	asked := make(chan struct{}, 1)
	lock.MakeRevocable(func() {
		select {
		case asked <- struct{}{}:
		default: // it has been asked already
		}
	})
	check(lock.Acquire(ctx))

	// Another process, which may be a Java one:
	for _, node := range must(lock.ParticipantNodes(ctx)) {
		check(recipes.AttemptRevoke(ctx, client, node))
	}

	<-asked
	fmt.Println("asked for the lock, which is still held:", lock.IsOwned(ctx))
	check(lock.Release(ctx))
	// Output: asked for the lock, which is still held: true
}

// The check and the write are one transaction: ZooKeeper writes only while the lock is
// held.
func ExampleHold_Multi() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	lock := must(recipes.NewInterProcessMutex(client, "/locks/settings"))
	check(lock.Acquire(ctx))
	hold := lock.Hold(ctx)

	write := &zk.SetDataRequest{Path: "/locks", Data: []byte("blue"), Version: -1}
	responses := must(hold.Multi(write))
	fmt.Println("while it is held:", responses[0].Error)

	check(lock.Release(ctx))
	_, err := hold.Multi(write)
	fmt.Println("after that:", errors.Is(err, recipes.ErrNotOwner))
	// Output:
	// while it is held: <nil>
	// after that: true
}

// A transaction through another client: the check has the path that the server sees.
func ExampleHold_CheckOp() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	ctx := context.Background()
	lock := must(recipes.NewInterProcessMutex(client, "/locks/settings"))
	check(lock.Acquire(ctx))
	hold := lock.Hold(ctx)

	write := &zk.SetDataRequest{Path: "/example/locks", Data: []byte("blue"), Version: -1}
	_, err := client.Unwrap().Multi(hold.CheckOp(), write)
	fmt.Println("while it is held:", err)

	check(lock.Release(ctx))
	_, err = client.Unwrap().Multi(hold.CheckOp(), write)
	fmt.Println("after that:", errors.Is(err, zk.ErrNoNode))
	// Output:
	// while it is held: <nil>
	// after that: true
}

// A job that takes a second to stop, and that nobody trusts to end.
func ExampleWithMaxHold() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()

	lock := must(recipes.NewInterProcessMutex(client, "/locks/import",
		recipes.WithMaxHold(100*time.Millisecond), // an hour, say
		recipes.WithLossMargin(time.Second)))
	err := recipes.Do(context.Background(), lock, func(
		ctx context.Context, _ *recipes.Hold,
	) error {
		<-ctx.Done() // nobody else holds the lock in the next second
		return context.Cause(ctx)
	})
	fmt.Println("it took too long:", errors.Is(err, recipes.ErrHoldExpired))
	fmt.Println("the lock was lost:", errors.Is(err, recipes.ErrLockLost))
	// Output:
	// it took too long: true
	// the lock was lost: true
}

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

// A Client is also a plain client of ZooKeeper, in the session that the locks live in.
func ExampleClient() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	name := must(client.Create("/config-", []byte("a"), zk.FlagEphemeral|zk.FlagSequence,
		zk.WorldACL(zk.PermAll)))
	data, stat, err := client.Get(name)
	check(err)
	fmt.Printf("%s, version %d\n", data, stat.Version)
	fmt.Println("mine:", stat.EphemeralOwner == client.SessionID())
	// Output:
	// a, version 0
	// mine: true
}

// Only the user "locks" may create or delete what is below the chroot.
func ExampleWithChrootACL() {
	client := must(recipes.Connect(context.Background(), "zk1:2181/app", 10*time.Second,
		recipes.WithAuth("digest", []byte("locks:secret")),
		recipes.WithChrootACL(zk.AuthACL(zk.PermAll))))
	defer client.Close()
}

// A typing mistake in a chroot gives a process locks of its own. Here it is an error.
func ExampleWithExistingChroot() {
	servers, stop := exampleServers()
	defer stop()

	_, err := recipes.Connect(context.Background(), servers+"/ap", 10*time.Second,
		recipes.WithExistingChroot())
	fmt.Println("no such chroot:", errors.Is(err, zk.ErrNoNode))
	// Output: no such chroot: true
}

// The servers end a session after two seconds at the earliest here, though a tick is a
// second: the locks are told so.
func ExampleWithClientServerTick() {
	client := must(recipes.Connect(context.Background(), "zk1:2181", 10*time.Second,
		recipes.WithClientServerTick(time.Second)))
	defer client.Close()
}

// Of a connection that is not a Client, each lock is told the tick.
func ExampleWithServerTick() {
	conn, _, err := zk.Connect([]string{"zk1:2181"}, 10*time.Second)
	check(err)
	defer conn.Close()
	lock := must(recipes.NewInterProcessMutex(conn, "/locks/report",
		recipes.WithSessionTimeout(10*time.Second), recipes.WithServerTick(time.Second)))
	_ = lock
}

// The link of a test's cluster can lose what this client sends, or what it is sent.
func ExampleWithDialer() {
	cluster := must(zktest.New())
	defer cluster.Close()
	link := cluster.Link("worker 1")
	client := must(recipes.Connect(context.Background(), cluster.Servers()[0].Addr(),
		10*time.Second, recipes.WithDialer(link.Dial)))
	defer client.Close()
	_, _, err := client.Get("/nothing")
	fmt.Println(err)
	// Output: zk: node does not exist
}

// By default the first server is drawn by chance. Yours can know which one is near.
func ExampleWithHostProvider() {
	var near zk.HostProvider = new(zk.DNSHostProvider)
	client := must(recipes.Connect(context.Background(), "zk1:2181,zk2:2181",
		10*time.Second, recipes.WithHostProvider(near)))
	defer client.Close()
}

// A list of a million children needs more than the default.
func ExampleWithMaxReply() {
	client := must(recipes.Connect(context.Background(), "zk1:2181", 10*time.Second,
		recipes.WithMaxReply(256<<20)))
	defer client.Close()
}

// A lock logs what no caller is told: here that it cannot know the session timeout.
func ExampleWithLogger() {
	cluster := must(zktest.New())
	defer cluster.Close()
	conn, _, err := zk.Connect(cluster.Addrs(), 10*time.Second, zk.WithLogInfo(false))
	check(err)
	defer conn.Close()
	var text bytes.Buffer
	wrapped := struct{ recipes.Conn }{conn} // it hides the type of conn
	lock := must(recipes.NewInterProcessMutex(wrapped, "/locks/report",
		recipes.WithLogger(slog.New(slog.NewTextHandler(&text, nil)))))
	check(recipes.Do(context.Background(), lock,
		func(context.Context, *recipes.Hold) error { return nil }))
	fmt.Println(strings.Contains(text.String(), "level=WARN"))
	// Output: true
}

// Options that all locks of a program share are kept in a slice.
func ExampleOption() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ours := []recipes.Option{
		recipes.WithData([]byte("host-17")),
		recipes.WithLogger(slog.Default()),
	}
	lock := must(recipes.NewInterProcessMutex(client, "/locks/shared-options", ours...))
	ctx := recipes.WithOwner(context.Background())
	check(lock.Acquire(ctx))
	for _, p := range must(lock.Participants(ctx)) {
		fmt.Printf("%s\n", p.Data)
	}
	if err := lock.Release(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: host-17
}

// A rotating login asks for the password at each handshake, so that it can change while
// the program runs.
type rotating struct {
	user     string
	password func() string
}

func (r rotating) Name() string { return "DIGEST-MD5 as " + r.user }

func (r rotating) Begin(
	ctx context.Context, host string,
) (recipes.SASLExchange, error) {
	return recipes.SASLDigestMD5(r.user, r.password()).Begin(ctx, host)
}

// Servers that require SASL want a user and a password, which may change.
func ExampleWithSASL() {
	cluster := must(zktest.New(
		zktest.WithSASLUsers(map[string]string{"bob": "hunter2"}),
	))
	defer cluster.Close()
	wrong := recipes.SASLDigestMD5("bob", "guess")
	changing := rotating{"bob", func() string { return "hunter2" }}
	for _, login := range []recipes.SASL{wrong, changing} {
		client, err := recipes.Connect(context.Background(), cluster.Addrs()[0],
			10*time.Second, recipes.WithSASL(login))
		fmt.Println(err == nil)
		if err == nil {
			client.Close()
		}
	}
	// Output:
	// false
	// true
}

// A service registers its address for as long as it runs.
func ExamplePersistentNode() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ctx := context.Background()
	node, err := recipes.NewPersistentNode(client, "/services/api", []byte("10.0.0.1:80"))
	if err != nil {
		log.Fatal(err)
	}
	check(node.Await(ctx)) // it exists by now, and comes back after a loss
	check(node.SetData(ctx, []byte("10.0.0.1:8080")))
	data, _, err := client.Get(node.Path())
	check(err)
	fmt.Printf("%s\n", data)
	check(node.Close(ctx))
	// Output: 10.0.0.1:8080
}

func ExampleNewPersistentNode() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	node := must(recipes.NewPersistentNode(client, "/services/worker", nil))
	node.Start() // in the background; readiness can wait for Await
	ctx := context.Background()
	check(node.Await(ctx))
	fmt.Println(node.Hold().Err() == nil)
	check(node.Close(ctx))
	// Output: true
}

// The processes of a group know of each other.
func ExampleGroupMember() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ctx := context.Background()
	for _, id := range []string{"host-17", "host-4"} {
		member, err := recipes.NewGroupMember(client, "/groups/api", id, []byte("ready"))
		if err != nil {
			log.Fatal(err)
		}
		check(member.Await(ctx))
		defer func() { check(member.Close(ctx)) }()
	}
	for _, m := range must(recipes.Members(ctx, client, "/groups/api")) {
		fmt.Printf("%s: %s\n", m.ID, m.Data)
	}
	// Output:
	// host-17: ready
	// host-4: ready
}

func ExampleWatchMembers() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ctx := context.Background()
	member := must(recipes.NewGroupMember(client, "/groups/watched", "host-17", nil))
	member.Start()
	for members, err := range recipes.WatchMembers(ctx, client, "/groups/watched") {
		if err != nil {
			log.Fatal(err)
		}
		if len(members) == 1 {
			fmt.Println(members[0].ID)
			break
		}
	}
	check(member.Close(ctx))
	// Output: host-17
}

// A member's znode tells since when it is there, and in which session.
func ExampleMember() {
	client, stop := exampleClient()
	defer stop()
	defer client.Close()
	ctx := context.Background()
	member := must(recipes.NewGroupMember(client, "/groups/one", "host-17", nil))
	check(member.Await(ctx))
	m := must(recipes.Members(ctx, client, "/groups/one"))[0]
	fmt.Println(m.ID, m.Session == client.SessionID())
	check(member.Close(ctx))
	// Output: host-17 true
}
