package cost_test

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// A longQueue is one lock on three servers for which many sessions wait, each with a
// session timeout of ten seconds.
type longQueue struct {
	*fleet
	cluster *zktest.Cluster
	granted chan func() // how to release the lock, by its holder
	release func()
}

func newLongQueue(t *testing.T, sessions int) *longQueue {
	t.Helper()
	cluster := zktest.Start(t, zktest.WithServers(3))
	q := &longQueue{newFleet(cluster), cluster, make(chan func(), 1), nil}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	clients := make([]*recipes.Client, sessions)
	for i := range clients {
		clients[i] = q.connect(ctx, t)
	}
	for _, client := range clients {
		q.join(ctx, t, client, ended)
		time.Sleep(time.Millisecond)
	}
	t.Cleanup(func() {
		q.release()
		cancel()
		for range sessions {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				require.NoError(t, err)
			}
		}
		time.Sleep(time.Minute)
	})
	q.release = <-q.granted
	return q
}

func (q *longQueue) connect(ctx context.Context, t *testing.T) *recipes.Client {
	t.Helper()
	client, err := recipes.Connect(ctx, strings.Join(q.cluster.Names(), ","),
		10*time.Second, recipes.WithDialer(q.tap.Dial))
	require.NoError(t, err)
	return client
}

// join lets a session wait, whose owner holds the lock once and then leaves.
func (q *longQueue) join(
	ctx context.Context, t *testing.T, client *recipes.Client, ended chan<- error,
) {
	t.Helper()
	lock := locktest.NewMutex(t, client, "/lock")
	go func() {
		ended <- recipes.Do(ctx, lock, func(context.Context, *recipes.Hold) error {
			over := make(chan struct{})
			q.granted <- func() { close(over) }
			<-over
			return nil
		})
		<-ctx.Done()
		client.Close()
	}()
}

// handOver releases the lock, and waits for the next holder.
func (q *longQueue) handOver() {
	q.release()
	q.release = <-q.granted
}

// restart stops all servers for a moment.
func (q *longQueue) restart() {
	for _, s := range q.cluster.Servers() {
		s.Stop()
	}
	time.Sleep(time.Second)
	for _, s := range q.cluster.Servers() {
		s.Start()
	}
}

// What docs/appendix/large-fleets.md says of a queue of many sessions: while nothing
// happens, while the lock is handed over once a second, and after all servers were
// restarted. QUEUE_SESSIONS=n is how many there are: 5,000 take 8 GB, 20,000 more than
// 24, since go-zookeeper's buffer of a session has its longest reply, a list.
func TestCostOfAQueueOfManySessions(t *testing.T) {
	sessions := 200
	if n := os.Getenv("QUEUE_SESSIONS"); n != "" {
		var err error
		sessions, err = strconv.Atoi(n)
		require.NoError(t, err)
	}
	const seconds = 30
	synctest.Test(t, func(t *testing.T) {
		q := newLongQueue(t, sessions)
		sum := func(requests map[wiretap.Op]int) (all int) {
			for _, n := range requests {
				all += n
			}
			return all
		}
		time.Sleep(time.Minute)
		idle, bytes := q.count(seconds * time.Second)
		t.Logf("%d sessions, idle: %d requests a second, %d bytes; %v",
			sessions, sum(idle)/seconds, bytes/seconds, idle)
		require.LessOrEqual(t, float64(sum(idle)), seconds*(0.33*float64(sessions)+3))

		done := make(chan struct{})
		go func() {
			defer close(done)
			for range seconds {
				q.handOver()
				time.Sleep(time.Second)
			}
		}()
		busy, bytes := q.count(seconds * time.Second)
		<-done
		t.Logf("with a hand-over a second: %d requests a second, %d bytes; %v",
			sum(busy)/seconds, bytes/seconds, busy)
		// A delete; the list of the next holder, with a sync; its hold's watch and syncs.
		require.LessOrEqual(t, sum(busy)-busy[wiretap.Ping]-busy[wiretap.GetData],
			seconds*8)
		require.LessOrEqual(t, busy[wiretap.GetChildren2], seconds)

		// go-zookeeper has a buffer of 1.5 MB for each new connection, which takes no
		// memory as long as it is new to the process, too.
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		q.restart()
		after, bytes := q.count(seconds * time.Second)
		t.Logf("in %d s after a restart: %d requests, %d bytes; %v",
			seconds, sum(after), bytes, after)
		waiting := sessions - seconds
		// Each reads its predecessor and its own znode. Only the holder and the next in
		// line send syncs; that one lists.
		require.LessOrEqual(t, after[wiretap.GetChildren2], 2)
		require.LessOrEqual(t, after[wiretap.Sync], 3*seconds)
		require.LessOrEqual(t, after[wiretap.GetData], 4*waiting)
		q.handOver()
	})
}
