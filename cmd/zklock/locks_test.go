package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

const lockPath = "/locks/order"

func connectTo(t *testing.T, cluster *zktest.Cluster) *recipes.Client {
	t.Helper()
	client, err := recipes.Connect(
		t.Context(), cluster.ConnectString(), 30*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// contenders are the ways of using one path, by name.
var contenders = map[string]func(*recipes.Client) (recipes.InterProcessLock, error){
	"exclusive": func(client *recipes.Client) (recipes.InterProcessLock, error) {
		return (&wanted{path: lockPath, kind: exclusive}).lock(client)
	},
	"shared": func(client *recipes.Client) (recipes.InterProcessLock, error) {
		return (&wanted{path: lockPath, kind: shared}).lock(client)
	},
	"mutex": func(client *recipes.Client) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessMutex(client, lockPath)
	},
	"writer": func(client *recipes.Client) (recipes.InterProcessLock, error) {
		both, err := recipes.NewInterProcessReadWriteLock(client, lockPath)
		return both.WriteLock(), err
	},
	"reader": func(client *recipes.Client) (recipes.InterProcessLock, error) {
		both, err := recipes.NewInterProcessReadWriteLock(client, lockPath)
		return both.ReadLock(), err
	},
}

func contender(
	t *testing.T, name string, client *recipes.Client,
) recipes.InterProcessLock {
	t.Helper()
	lock, err := contenders[name](client)
	require.NoError(t, err)
	return lock
}

// An exclusive run excludes all others, and they exclude it.
func TestExclusiveRunExcludes(t *testing.T) {
	cluster := zktest.Start(t)
	client := connectTo(t, cluster)
	for name := range contenders {
		for _, pair := range [][2]string{{"exclusive", name}, {name, "exclusive"}} {
			first := recipes.WithOwner(t.Context())
			second := recipes.WithOwner(t.Context())
			holder := contender(t, pair[0], client)
			require.NoError(t, holder.Acquire(first))
			got, err := contender(t, pair[1], client).AcquireTimeout(second, 0)
			require.NoError(t, err)
			require.False(t, got, pair)
			require.NoError(t, holder.Release(first))
		}
	}
}

// A queue is a number of contenders that join one after the other.
type queue struct {
	t       *testing.T
	cluster *zktest.Cluster
	mu      sync.Mutex // guards what follows
	granted []string   // who has acquired the lock, in order
}

// join returns when the contender has a znode at the tail, before all that come later.
// The contender keeps the lock until leave is called, which returns when it has released
// it.
func (q *queue) join(name, who string) (leave func(), hold func() *recipes.Hold) {
	client := connectTo(q.t, q.cluster)
	lock := contender(q.t, name, client)
	before := q.znodes()
	acquired, left, done := make(chan *recipes.Hold, 1), make(chan struct{}),
		make(chan error, 1)
	go func() {
		ctx := recipes.WithOwner(context.Background())
		if err := lock.Acquire(ctx); err != nil {
			done <- err
			return
		}
		q.mu.Lock()
		q.granted = append(q.granted, who)
		q.mu.Unlock()
		held := lock.Hold(ctx)
		if both, ok := lock.(*recipes.InterProcessMultiLock); ok {
			held = both.Holds(ctx)[0]
		}
		acquired <- held
		<-left
		done <- lock.Release(ctx)
	}()
	require.Eventually(q.t, func() bool { return q.znodes() > before }, patience,
		time.Millisecond)
	return func() {
			close(left)
			require.NoError(q.t, <-done)
		}, func() *recipes.Hold {
			select {
			case h := <-acquired:
				return h
			case <-time.After(patience):
				require.FailNow(q.t, "not acquired", "%s: %s", who,
					strings.Join(q.cluster.Znodes(), "\n"))
				return nil
			}
		}
}

func (q *queue) znodes() (n int) {
	for _, znode := range q.cluster.Znodes() {
		if strings.HasPrefix(znode, lockPath+"/") {
			n++
		}
	}
	return n
}

// Whoever queues for the read or the write lock gets it in the order in which it came, an
// exclusive run among them; and a fencing token that grows with each of them.
func TestRunsKeepTheOrder(t *testing.T) {
	names := []string{"exclusive", "shared", "writer", "reader"}
	for round := range 10 {
		random := rand.New(rand.NewPCG(18, uint64(round)))
		q := &queue{t: t, cluster: zktest.Start(t)}
		firstLeaves, first := q.join("exclusive", "first")
		token := first().FencingToken()
		var want []string
		var leaves []func()
		var holds []func() *recipes.Hold
		for i := range 6 {
			name := names[random.IntN(len(names))]
			want = append(want, fmt.Sprint(i, " ", name))
			leave, hold := q.join(name, want[i])
			leaves, holds = append(leaves, leave), append(holds, hold)
		}
		firstLeaves()
		for i := range leaves {
			held := holds[i]()
			require.Greater(t, held.FencingToken(), token, want[:i+1])
			token = held.FencingToken()
			exclusive := !strings.HasSuffix(want[i], "shared") &&
				!strings.HasSuffix(want[i], "reader")
			if exclusive {
				q.mu.Lock()
				require.ElementsMatch(t, want[:i+1], q.granted[1:], "seed %d", round)
				q.mu.Unlock()
			}
			leaves[i]()
		}
	}
}

// A run that has waited for the mutex with a limit on its hold has kept its place, and
// the limit begins when it has both locks.
func TestLimitOfAHoldCostsNoPlace(t *testing.T) {
	cluster := zktest.Start(t)
	client := connectTo(t, cluster)
	mutex := contender(t, "mutex", client)
	owner := recipes.WithOwner(t.Context())
	require.NoError(t, mutex.Acquire(owner))

	const limit = 300 * time.Millisecond
	run := &wanted{
		path: lockPath, kind: exclusive,
		limit: []recipes.Option{recipes.WithMaxHold(limit)},
	}
	type outcome struct {
		held *holding
		err  error
	}
	acquired := make(chan outcome, 1)
	runner := connectTo(t, cluster)
	go func() {
		held, err := run.acquire(context.Background(), runner, noLimit)
		acquired <- outcome{held, err}
	}()
	writer := func() (name string) {
		for _, znode := range cluster.Znodes() {
			if strings.Contains(znode, "__WRIT__") {
				name = znode
			}
		}
		return name
	}
	require.Eventually(t, func() bool { return writer() != "" }, patience,
		time.Millisecond)
	place := writer()
	time.Sleep(3 * limit)
	require.Equal(t, place, writer())
	released := time.Now()
	require.NoError(t, mutex.Release(owner))
	got := <-acquired
	require.NoError(t, got.err)
	require.Equal(t, place, got.held.hold.Path())
	select {
	case <-got.held.whole.Lost():
	case <-time.After(patience):
		require.FailNow(t, "the hold has no limit")
	}
	require.ErrorIs(t, got.held.whole.Err(), recipes.ErrHoldExpired)
	require.GreaterOrEqual(t, time.Since(released), limit)
	require.Error(t, got.held.whole.Release(t.Context()))
}

// Nobody waits forever for somebody who waits for him: runs, programs that use one of
// the locks, and programs that use several and acquire the mutex last.
func TestRunsAndProgramsNeverDeadlock(t *testing.T) {
	cluster := zktest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kinds := []string{
		"exclusive", "exclusive", "exclusive", "shared", "shared", "mutex", "mutex",
		"writer", "reader", "both",
	}
	var mu sync.Mutex
	writing, reading := 0, 0
	var all sync.WaitGroup
	for i, name := range kinds {
		client := connectTo(t, cluster)
		var lock recipes.InterProcessLock
		if name == "both" {
			lock = recipes.NewInterProcessMultiLockOf(
				contender(t, "writer", client), contender(t, "mutex", client))
		} else {
			lock = contender(t, name, client)
		}
		all.Go(func() {
			for range 20 {
				owner := recipes.WithOwner(ctx)
				if err := lock.Acquire(owner); err != nil {
					t.Errorf("%d, %s: %v", i, name, err)
					return
				}
				mu.Lock()
				switch name {
				case "exclusive":
					writing++
				case "shared":
					reading++
				}
				if writing > 1 || writing > 0 && reading > 0 {
					t.Errorf("%d exclusive and %d shared runs at once", writing, reading)
				}
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				switch name {
				case "exclusive":
					writing--
				case "shared":
					reading--
				}
				mu.Unlock()
				if err := lock.Release(owner); err != nil {
					t.Errorf("%d, %s: %v", i, name, err)
				}
			}
		})
	}
	all.Wait()
}
