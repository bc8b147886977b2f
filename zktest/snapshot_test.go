package zktest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// An ensemble that was restored has what the snapshot has, and sessions of then for their
// timeout. It hangs up on a client that has seen more, and takes a new one.
func TestRestore(t *testing.T) {
	for name, c := range map[string]struct {
		servers int
		empty   bool
	}{
		"a server":               {1, false},
		"an ensemble":            {3, false},
		"a server, disk lost":    {1, true},
		"an ensemble, disk lost": {3, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := zktest.Start(t, zktest.WithServers(c.servers))
				conn := connectTo(t, cluster, cluster.Servers()[0]).Conn
				create := func(conn *zk.Conn, path string, flags int32) {
					_, err := conn.Create(path, nil, flags, zk.WorldACL(zk.PermAll))
					require.NoError(t, err)
				}
				var shot zktest.Snapshot
				create(conn, "/before", 0)
				create(conn, "/held", zk.FlagEphemeral)
				if !c.empty {
					shot = cluster.Snapshot()
				}
				for range 2 { // each leader has a new epoch
					cluster.Leader().Stop()
					time.Sleep(time.Minute)
					for _, s := range cluster.Servers() {
						s.Start()
					}
					time.Sleep(time.Minute)
				}
				for range 10 {
					create(conn, "/after", zk.FlagSequence)
				}
				create(conn, "/after", 0)
				cluster.Restore(shot)
				time.Sleep(time.Minute)
				require.NotEqual(t, zk.StateHasSession, conn.State())

				other := connect(t, cluster.Link("other"), oneServer(
					cluster.Servers()[c.servers-1].Addr()), sessionTimeout)
				exists := func(path string) bool {
					is, _, err := other.Exists(path)
					require.NoError(t, err)
					return is
				}
				require.Equal(t, !c.empty, exists("/before"))
				require.False(t, exists("/after"))
				require.False(t, exists("/held"), "its session has ended")
				create(other.Conn, "/later", 0)
			})
		})
	}
}
