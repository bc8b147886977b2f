package survey_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

// A crowd is many locks, of which some are in use: each has a holder and a waiter.
type crowd struct {
	*scene
	conn  *zk.Conn
	heads map[int]string // the holder's znode
	tails map[int]string // the waiter's
}

const (
	crowdOf    = 10_000
	crowdInUse = 2_000
)

func (c *crowd) path(i int) string { return fmt.Sprintf("/locks/%d/%d", i%100, i) }

func (c *crowd) create(path string, flags int32) string {
	c.Helper()
	created, err := c.conn.Create(path, []byte("host-1 (pid 4711, report)"), flags,
		zk.WorldACL(zk.PermAll))
	require.NoError(c, err)
	return created
}

func (c *crowd) join(i int) string {
	return c.create(c.path(i)+"/_c_5c5ad0a8-2a3c-4e67-8f0e-d3c1e0a2f6b1-lock-",
		zk.FlagEphemeral|zk.FlagSequence)
}

// fill creates the locks.
func (c *crowd) fill() {
	c.create("/locks", 0)
	for i := range crowdOf {
		if i < 100 {
			c.create(fmt.Sprintf("/locks/%d", i), 0)
		}
		c.create(c.path(i), 0) // a container would go while nobody uses it
		c.heads[i] = c.join(i)
		if i < crowdInUse {
			c.tails[i] = c.join(i)
		} else {
			require.NoError(c, c.conn.Delete(c.heads[i], -1))
		}
	}
}

// handOver lets the holder of a lock go, and somebody new queue.
func (c *crowd) handOver(i int) {
	require.NoError(c, c.conn.Delete(c.heads[i], -1))
	c.heads[i], c.tails[i] = c.tails[i], c.join(i)
}

// What the table in docs/serve.md says of 10,000 locks, of which 2,000 are in use and 200
// change a second: requests, and memory.
func TestCost(t *testing.T) {
	all := &crowd{heads: map[int]string{}, tails: map[int]string{}}
	var before int64
	inScene(t, config(), func(s *scene) {
		all.scene, all.conn = s, s.client.Unwrap()
		all.fill()
		before = heap()
	}, func(s *scene) {
		for s.survey.State().Walked.IsZero() {
			time.Sleep(time.Second)
		}
		walk := s.survey.Requests()
		t.Logf("the walk: %d requests: %v", walk.All(), walk)
		require.Len(s, s.survey.State().Locks, crowdInUse)
		require.LessOrEqual(s, walk.All(), uint64(walkCosts(crowdOf, crowdInUse, 2)))

		const changes, lasts = 200, 60
		for i := range changes * lasts {
			time.Sleep(time.Second / changes)
			all.handOver(i * 7 % crowdInUse)
		}
		s.wait()
		live := s.survey.Requests()
		sent := live.All() - walk.All()
		t.Logf("%d changes in %d s: %d requests: %v", changes*lasts, lasts, sent, live)
		require.LessOrEqual(s, sent, uint64(2*2*changes*lasts+2*lasts))
		handovers, missed := uint64(0), uint64(0)
		for _, l := range s.survey.State().Locks {
			handovers, missed = handovers+l.Handovers, missed+l.Missed
		}
		require.Zero(s, missed)
		require.Equal(s, uint64(changes*lasts), handovers)

		used := heap() - before
		t.Logf("%d MiB of heap, with the servers' watches and the stacks", used>>20)
		require.Less(s, used, int64(150<<20))
		walked, again := s.survey.State().Walked, s.survey.Requests()
		began := time.Now()
		for s.survey.State().Walked.Equal(walked) {
			time.Sleep(10 * time.Second)
		}
		rescan := s.survey.Requests()
		sent = rescan.All() - again.All() - uint64(time.Since(began)/time.Second)
		t.Logf("a walk when all is watched: %d requests: %v", sent, rescan)
		require.LessOrEqual(s, sent, uint64(crowdOf+2*crowdInUse+crowdOf/100+4))
	})
}

// walkCosts is what the page says that the first walk costs.
func walkCosts(locks, inUse, participants int) int {
	return 2*locks + inUse*(3+participants) + 3*locks/100 + 100
}

// heap is what is in use, stacks included.
func heap() int64 {
	synctest.Wait()
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
