package registration_test

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// A meter counts the bytes of connections, in both directions.
type meter struct{ bytes atomic.Int64 }

type metered struct {
	net.Conn
	of *meter
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.of.bytes.Add(int64(n))
	return n, err
}

func (m metered) Write(p []byte) (int, error) {
	m.of.bytes.Add(int64(len(p)))
	return m.Conn.Write(p)
}

// dial returns a dialer whose connections are counted.
func (m *meter) dial(through zk.Dialer) zk.Dialer {
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := through(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return metered{conn, m}, nil
	}
}

// A gallery is many processes that watch one group.
type gallery struct {
	meter    meter
	taps     []*wiretap.Tap
	watchers []*watcher
}

func newGallery(t *testing.T, c *zktest.Cluster, size int) *gallery {
	t.Helper()
	g := &gallery{}
	for i := range size {
		tap := wiretap.New(g.meter.dial(c.Link(fmt.Sprint("watcher ", i)).Dial))
		client, err := recipes.Connect(t.Context(), strings.Join(c.Names(), ","),
			time.Minute, recipes.WithDialer(tap.Dial))
		require.NoError(t, err)
		t.Cleanup(client.Close)
		g.taps, g.watchers = append(g.taps, tap), append(g.watchers, watch(t, client))
	}
	return g
}

// cost returns what the requests and bytes are, of all, of what f does.
func (g *gallery) cost(f func()) (requests map[wiretap.Op]int, bytes int64) {
	for _, tap := range g.taps {
		tap.Reset()
	}
	before := g.meter.bytes.Load()
	f()
	time.Sleep(time.Second)
	requests = map[wiretap.Op]int{}
	for _, tap := range g.taps {
		for op, n := range counted(tap) {
			requests[op] += n
		}
	}
	return requests, g.meter.bytes.Load() - before
}

// A join that 20 watchers see: a list and a read for each, and so the bytes of the list,
// a name of 20 bytes and its length for each member. A change of data is a read for each.
// Each watcher has a watch on the group and one on each member.
func TestTheCostOfManyWatchers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const watchers, size, idLength = 20, 100, 20
		c := zktest.Start(t)
		other := locktest.ConnectThrough(t, c, "other")
		mkdir(t, other)
		member := func(i int) string { return fmt.Sprintf("/services/%0*d", idLength, i) }
		join := func(i int) {
			_, err := other.Create(member(i), make([]byte, 20), zk.FlagEphemeral,
				zk.WorldACL(zk.PermAll))
			require.NoError(t, err)
		}
		for i := range size {
			join(i)
		}
		before := c.Watches()
		g := newGallery(t, c, watchers)
		time.Sleep(10 * time.Second)
		require.Equal(t, watchers*(size+1), c.Watches()-before)

		// An event, the headers, stats and paths of the answers, and a ping.
		const overhead = 500
		requests, bytes := g.cost(func() { join(size) })
		require.Equal(t, map[wiretap.Op]int{
			wiretap.GetChildren2: watchers, wiretap.GetData: watchers,
		}, requests)
		list := int64((size + 1) * (4 + idLength))
		require.Greater(t, bytes, watchers*list)
		require.Less(t, bytes, watchers*(list+overhead))
		require.Equal(t, watchers*(size+2), c.Watches()-before)
		for _, w := range g.watchers {
			require.Len(t, w.last(), size+1)
		}

		requests, bytes = g.cost(func() {
			_, err := other.Set(member(3), make([]byte, 30), -1)
			require.NoError(t, err)
		})
		require.Equal(t, map[wiretap.Op]int{wiretap.GetData: watchers}, requests)
		require.Less(t, bytes, int64(watchers*overhead))
		for _, w := range g.watchers {
			w.stop()
			<-w.done
		}
	})
}
