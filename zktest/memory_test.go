package zktest_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// TestMemory bounds that of 1,000 clients and 100,000 znodes, both ends of the
// connections together.
func TestMemory(t *testing.T) {
	const clients, each, most = 1000, 100, 150 << 20
	synctest.Test(t, func(t *testing.T) {
		before := heap()
		c := zktest.Start(t, zktest.WithMaxSession(time.Hour))
		var all []*rawClient
		for i := range clients {
			raw := dialRaw(t, c.Link(""), c.Server(0)).open(time.Hour)
			all = append(all, raw)
			for n := range each {
				raw.send(creation(1, fmt.Sprintf("/%d-%d", i, n), 1))
				require.Equal(t, outcome{xid: 1}, raw.answer())
			}
		}
		require.Len(t, c.Znodes(), clients*each)
		grown := heap() - before
		t.Logf("%d MB", grown>>20)
		require.Less(t, grown, int64(most))
		runtime.KeepAlive(all)
	})
}

// TestAnHourOfWrites grows by nothing: a write each 50 ms, by one client after the other.
func TestAnHourOfWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t, zktest.WithServers(3))
		var minute int64
		for i := range 60 {
			raw := dialRaw(t, c.Link(""), c.Leader()).open(sessionTimeout)
			for range 600 {
				raw.send(creation(1, "/a", 1))
				require.Equal(t, outcome{xid: 1}, raw.answer())
				time.Sleep(50 * time.Millisecond)
				raw.send(deletion(2, "/a"))
				require.Equal(t, outcome{xid: 2}, raw.answer())
				time.Sleep(50 * time.Millisecond)
			}
			raw.send(farewell(3))
			require.Equal(t, outcome{xid: 3}, raw.answer())
			require.NoError(t, raw.Close())
			if i == 0 {
				minute = heap()
			}
		}
		require.Less(t, heap()-minute, int64(1<<20))
	})
}

func deletion(xid int32, path string) []byte {
	return ask(xid, 2, func(b *buffer) {
		b.bytes([]byte(path))
		b.int32(-1)
	})
}
