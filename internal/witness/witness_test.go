package witness

import (
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

const path = "/witness"

func TestMain(m *testing.M) { os.Exit(zkserver.Main(m)) }

func start(t *testing.T, servers []string) *Witness {
	t.Helper()
	conn, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	return Start(conn, Config{
		Path: path, ACL: zk.WorldACL(zk.PermAll), Pace: 5 * time.Millisecond,
	})
}

// A znode that was deleted and created again looks like one whose writes are forgotten.
func TestWitness(t *testing.T) {
	for _, test := range []struct {
		name    string
		disturb func(t *testing.T, conn *zk.Conn)
		want    string
	}{
		{"nothing is forgotten", func(*testing.T, *zk.Conn) {}, ""},
		{"the znode is gone", func(t *testing.T, conn *zk.Conn) {
			require.NoError(t, conn.Delete(path, -1))
		}, "does not exist"},
		{"its writes are gone", func(t *testing.T, conn *zk.Conn) {
			_, err := conn.Multi(
				&zk.DeleteRequest{Path: path, Version: -1},
				&zk.CreateRequest{Path: path, Acl: zk.WorldACL(zk.PermAll)},
			)
			require.NoError(t, err)
		}, "is the write"},
	} {
		t.Run(test.name, func(t *testing.T) {
			servers := zkserver.Start(t).Servers
			addrs := []string{servers[0].Addr}
			w := start(t, addrs)
			conn, _, err := zk.Connect(addrs, 10*time.Second, zk.WithLogInfo(false))
			require.NoError(t, err)
			defer conn.Close()
			version := func() int32 {
				_, stat, err := conn.Get(path)
				if err != nil {
					return -1
				}
				return stat.Version
			}
			require.Eventually(t, func() bool { return version() >= 3 },
				10*time.Second, time.Millisecond)
			test.disturb(t, conn)
			if test.want == "" {
				before := version()
				require.Eventually(t, func() bool { return version() > before },
					10*time.Second, time.Millisecond)
				require.NoError(t, w.Finish())
				return
			}
			w.ended.Wait()
			require.ErrorContains(t, w.Finish(), test.want)
		})
	}
}
