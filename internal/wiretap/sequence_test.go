package wiretap_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestShiftSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		tap.ShiftSequence(math.MaxInt32 - 1)
		names := []string{"x-lock-", "_c_1-__READ__", "_c_2-__WRIT__", "_c_3-lease-"}
		onServer := []string{
			"x-lock-0000000000", "_c_1-__READ__0000000001", "_c_2-__WRIT__0000000002",
			"_c_3-lease-0000000003",
		}
		want := []string{
			"x-lock-2147483646", "_c_1-__READ__2147483647", "_c_2-__WRIT__-2147483648",
			"_c_3-lease--2147483647",
		}
		for i, name := range names {
			require.Equal(t, "/"+want[i], create(t, conn, "/"+name, zk.FlagSequence))
			require.True(t, exists(server, "/"+onServer[i]), onServer[i])
		}
		create(t, conn, "/unrelated-0000000007", 0)
		require.True(t, exists(server, "/unrelated-0000000007"))
		create(t, conn, "/lock-0000000007-config", 0)
		require.True(
			t, exists(server, "/lock-0000000007-config"),
			"a number that does not end the name",
		)

		children, _, err := conn.Children("/")
		require.NoError(t, err)
		slices.Sort(children)
		require.Equal(t, []string{
			"_c_1-__READ__2147483647", "_c_2-__WRIT__-2147483648",
			"_c_3-lease--2147483647",
			"lock-0000000007-config", "unrelated-0000000007", "x-lock-2147483646",
			"zookeeper",
		}, children)

		for _, name := range want {
			data, _, events, err := conn.GetW("/" + name)
			require.NoError(t, err)
			require.Equal(t, "data", string(data))
			require.NoError(t, conn.Delete("/"+name, -1))
			require.Equal(t, zk.Event{
				Type: zk.EventNodeDeleted, State: zk.StateSyncConnected, Path: "/" + name,
			}, <-events)
		}
		requests := tap.Requests()
		require.Equal(
			t, "/"+want[3], requests[len(requests)-1].Path,
			"the tap tells what the client sees",
		)
	})
}

// Close to zero ZooKeeper pads a negative number to ten characters, its sign included.
func TestShiftSequencePadsNegativeNumbersAsZooKeeperDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tap, server, conn := tapServer(t)
		tap.ShiftSequence(-1)
		require.Equal(t, "/lock--000000001", create(t, conn, "/lock-", zk.FlagSequence))
		require.Equal(t, "/lock-0000000000", create(t, conn, "/lock-", zk.FlagSequence))
		require.NoError(t, conn.Delete("/lock--000000001", -1))
		require.False(t, exists(server, "/lock-0000000000"))
		require.True(t, exists(server, "/lock-0000000001"))
	})
}
