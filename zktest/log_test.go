package zktest_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// TestTheLogIsForgotten measures the heap, while all servers have the log and while one
// has not and may never come back.
func TestTheLogIsForgotten(t *testing.T) {
	const most = 2 << 20 // bytes: each 1,000 writes that were kept would take 700 kB
	for name, c := range map[string]struct {
		writes  int
		servers int
		absent  func(*zktest.Server)
	}{
		"alone":    {100_000, 1, nil},
		"together": {20_000, 3, nil},
		"stopped":  {20_000, 3, (*zktest.Server).Stop},
		"frozen":   {20_000, 3, (*zktest.Server).Freeze},
		"isolated": {20_000, 3, (*zktest.Server).Isolate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := zktest.Start(t, zktest.WithServers(c.servers))
				raw := dialRaw(t, cluster.Link(""), cluster.Leader()).open(time.Minute)
				raw.send(creation(1, "/n", 0))
				raw.answer()
				if c.absent != nil {
					c.absent(without(cluster.Servers(), cluster.Leader())[0])
					time.Sleep(15 * time.Second) // they have given each other up
				}
				overwrite(t, raw, 2_000)
				before := heap()
				overwrite(t, raw, c.writes)
				require.Less(t, heap(), before+most)
			})
		})
	}
}

// overwrite sends one setData after the other.
func overwrite(t *testing.T, raw *rawClient, times int) {
	t.Helper()
	for i := range int32(times) {
		raw.send(ask(i, 5, func(b *buffer) {
			b.bytes([]byte("/n"))
			b.bytes(fmt.Appendf(nil, "%300d", i))
			b.int32(-1)
		}))
		if got := raw.answer(); got != (outcome{i, 0}) {
			t.Fatalf("%d: %+v", i, got)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestAServerCatchesUp has one come back after a few writes, which it is told one by one,
// and after so many that it takes a snapshot. What it has then is what the others have.
func TestAServerCatchesUp(t *testing.T) {
	for _, rounds := range []int{10, 400} {
		for name, fault := range map[string]struct{ begin, end func(*zktest.Server) }{
			"stopped":  {(*zktest.Server).Stop, (*zktest.Server).Start},
			"frozen":   {(*zktest.Server).Freeze, (*zktest.Server).Thaw},
			"isolated": {(*zktest.Server).Isolate, (*zktest.Server).Rejoin},
		} {
			t.Run(fmt.Sprint(name, rounds), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c, _, late := three(t, zktest.WithContainerCheck(time.Minute))
					busy := connectTo(t, c, c.Leader())
					work(t, busy, 0, 3)
					fault.begin(late)
					pass(8 * tickTime)
					work(t, busy, 3, rounds)
					fault.end(late)
					pass(8 * tickTime)
					require.Equal(t, c.Leader().Zxid(), late.Zxid())
					behind := connectTo(t, c, late)
					sameTrees(t, busy, behind)
					goOn(t, c, busy, behind, late)
				})
			})
		}
	}
}

// work leaves a trace of each kind of write.
func work(t *testing.T, cl *zkClient, from, to int) {
	t.Helper()
	if from == 0 {
		cl.create("/q", 0)
		cl.create("/old", 0)
		_, err := cl.CreateContainer("/box", nil, zk.FlagContainer, anyone)
		require.NoError(t, err)
		cl.create("/box/one", 0)
	}
	for i := from; i < to; i++ {
		cl.create("/q/n-", zk.FlagSequence)
		cl.create(fmt.Sprintf("/q/e%d", i), zk.FlagEphemeral)
		_, err := cl.Set("/q", fmt.Append(nil, i), -1)
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, cl.Delete(fmt.Sprintf("/q/n-%010d", 2*i), -1))
		}
	}
	if from != 0 {
		require.NoError(t, cl.Delete("/old", -1))
	}
}

// sameTrees compares all that two clients see.
func sameTrees(t *testing.T, a, b *zkClient) {
	t.Helper()
	for _, path := range paths(t, a, "/") {
		data, stat, err := a.Get(path)
		require.NoError(t, err)
		otherData, otherStat, err := b.Get(path)
		require.NoError(t, err)
		require.Equal(t, data, otherData, path)
		require.Equal(t, stat, otherStat, path)
	}
	require.Equal(t, paths(t, a, "/"), paths(t, b, "/"))
}

func paths(t *testing.T, cl *zkClient, path string) []string {
	t.Helper()
	all := []string{path}
	children, _, err := cl.Children(path)
	require.NoError(t, err)
	slices.Sort(children)
	for _, child := range children {
		below := path + "/" + child
		if path == "/" {
			below = "/" + child
		}
		all = append(all, paths(t, cl, below)...)
	}
	return all
}

// goOn shows that the server has its own tree, and that it has all of it.
func goOn(
	t *testing.T, c *zktest.Cluster, busy, behind *zkClient, late *zktest.Server,
) {
	t.Helper()
	late.Lag(tickTime / 10)
	require.NoError(t, busy.Delete("/box/one", -1))
	inside, _, err := behind.Children("/box")
	require.NoError(t, err)
	require.Equal(t, []string{"one"}, inside, "it lags")
	late.Lag(0)
	busy.Close()
	pass(time.Second)
	children, _, err := behind.Children("/q")
	require.NoError(t, err)
	for _, child := range children {
		require.Equal(t, "n-", child[:2], "the ephemeral znodes went with their session")
	}
	behind.create("/top", 0)
	roots, _, err := behind.Children("/")
	require.NoError(t, err)
	require.Contains(t, roots, "top", "the root is still one znode")
	leader := c.Leader()
	other := without(without(c.Servers(), leader), late)[0]
	other.Stop()
	behind.create("/ahead", 0) // of the one that has stopped, which cannot lead then
	leader.Stop()
	other.Start()
	pass(8 * tickTime)
	require.True(t, late.Leading())
	pass(2 * time.Minute)
	require.False(t, behind.has("/box"), "it knows which containers there are")
}

// TestWithLog compares what the log shows with what the client did. What was refused, or
// changes nothing, is not in it.
func TestWithLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []zktest.Transaction // written under the Cluster's mutex
		cluster := zktest.Start(t, zktest.WithLog(func(x zktest.Transaction) {
			log = append(log, x)
		}))
		cl := connect(t, cluster.Link(""), cluster.HostProvider(), sessionTimeout)
		id := cl.SessionID()
		_, err := cl.Create("/a", nil, 0, anyone)
		require.NoError(t, err)
		_, err = cl.Create("/a", nil, 0, anyone)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		_, err = cl.Sync("/a")
		require.NoError(t, err)
		_, err = cl.Create("/a/n-", nil, zk.FlagEphemeralSequential, anyone)
		require.NoError(t, err)
		_, err = cl.Multi(
			&zk.SetDataRequest{Path: "/a", Version: -1},
			&zk.CreateRequest{Path: "/b", Acl: anyone},
		)
		require.NoError(t, err)
		_, err = cl.Multi(
			&zk.DeleteRequest{Path: "/b", Version: -1},
			&zk.DeleteRequest{Path: "/c", Version: -1},
		)
		require.ErrorIs(t, err, zk.ErrNoNode)
		require.NoError(t, cl.Delete("/b", -1))
		cl.Close()
		synctest.Wait()
		cluster.Close()
		first := log[0].Zxid
		for i := range log {
			log[i].Zxid -= first
		}
		require.Equal(t, []zktest.Transaction{
			{Op: zktest.OpCreate, Path: "/a", Session: id},
			{Zxid: 2, Op: zktest.OpCreate, Path: "/a/n-0000000000", Session: id},
			{Zxid: 3, Op: zktest.OpSet, Path: "/a", Session: id},
			{Zxid: 3, Op: zktest.OpCreate, Path: "/b", Session: id},
			{Zxid: 5, Op: zktest.OpDelete, Path: "/b", Session: id},
			{Zxid: 6, Op: zktest.OpClose, Session: id},
		}, log)
	})
}
