package zkserver_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == orphanMaker {
		makeOrphan()
	}
	os.Exit(zkserver.Main(m))
}

// within bounds what has no reason to take long, except on a loaded machine.
const within = time.Minute

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// dial returns a client with a session.
func dial(t *testing.T, c *zkserver.Cluster) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(
		strings.Split(c.Connect(), ","), 10*time.Second, zk.WithLogger(quiet{}),
	)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	timeout := time.After(within)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-timeout:
			t.Fatalf("no session with %s within %v", c.Connect(), within)
		}
	}
}

func create(t *testing.T, conn *zk.Conn, path, data string) {
	t.Helper()
	_, err := conn.Create(path, []byte(data), 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

func TestSmokeShared(t *testing.T) {
	t.Parallel()
	c := zkserver.Shared(t)
	require.Same(t, c, zkserver.Shared(t))
	conn, path := dial(t, c), zkserver.Path(t)
	create(t, conn, path, "x")
	got, _, err := conn.Get(path)
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
	require.NoError(t, conn.Delete(path, 0))
}

func TestSmokeFreeze(t *testing.T) {
	t.Parallel()
	server := zkserver.Start(t).Servers[0]
	require.NoError(t, server.Freeze())
	answer, err := server.FourLetter("srvr")
	require.ErrorIs(
		t, err, os.ErrDeadlineExceeded,
		"a frozen server takes connections, and does not answer",
	)
	require.Empty(t, answer)
	require.NoError(t, server.Thaw())
	answer, err = server.FourLetter("srvr")
	require.NoError(t, err)
	require.Contains(t, answer, "Mode: standalone")
}

func TestSmokeLog(t *testing.T) {
	t.Parallel()
	zkserver.Real(t, "a log")
	server := zkserver.Start(t).Servers[0]
	_, err := server.FourLetter("srvr")
	require.NoError(t, err)
	require.Contains(t, server.Log(), "srvr")
	require.NotEmpty(t, server.LogLines("Reading configuration"), "where the log begins")
	require.Empty(t, server.LogLines("what no server logs"))
}

func TestSmokeRestartKeepsAddressAndData(t *testing.T) {
	t.Parallel()
	for _, frozen := range []bool{false, true} {
		c := zkserver.Start(t)
		server, addr := c.Servers[0], c.Servers[0].Addr
		conn, path := dial(t, c), zkserver.Path(t)
		create(t, conn, path, "kept")
		if frozen {
			require.NoError(t, server.Freeze())
		}
		require.NoError(t, server.Kill())
		_, err := server.FourLetter("srvr")
		require.Error(t, err)
		require.NoError(t, server.Restart())
		require.Equal(t, addr, server.Addr)
		got, _, err := dial(t, c).Get(path)
		require.NoError(t, err)
		require.Equal(t, "kept", string(got))
		require.ErrorContains(t, server.Restart(), "restart "+addr)
	}
}

func TestSmokeEnsemble(t *testing.T) {
	t.Parallel()
	c := zkserver.Start(t, zkserver.Servers(3))
	leader := findLeader(t, c)
	conn, path := dial(t, c), zkserver.Path(t)
	create(t, conn, path, "kept")

	require.NoError(t, leader.Kill())
	require.Eventually(t, func() bool {
		_, err := conn.Set(path, []byte("without the leader"), -1)
		return err == nil
	}, within, 50*time.Millisecond, "two of three serve on")

	require.NoError(t, leader.Restart())
	require.NotSame(t, leader, findLeader(t, c))
	answer, err := leader.FourLetter("srvr")
	require.NoError(t, err)
	require.Contains(t, answer, "Mode: follower")
}

// findLeader returns the one leader, and checks that all others follow.
func findLeader(t *testing.T, c *zkserver.Cluster) *zkserver.Server {
	t.Helper()
	var leaders []*zkserver.Server
	for _, s := range c.Servers {
		answer, err := s.FourLetter("srvr")
		require.NoError(t, err)
		if strings.Contains(answer, "Mode: leader") {
			leaders = append(leaders, s)
			continue
		}
		require.Contains(t, answer, "Mode: follower")
	}
	require.Len(t, leaders, 1)
	return leaders[0]
}

func TestOptions(t *testing.T) {
	t.Parallel()
	c := zkserver.Start(t,
		zkserver.Tick(100*time.Millisecond),
		zkserver.MaxSession(7*time.Second),
		zkserver.Config("minSessionTimeout=300"),
		zkserver.JVM("-Dznode.container.checkIntervalMs=100"))
	conf, err := c.Servers[0].FourLetter("conf")
	require.NoError(t, err)
	for _, line := range []string{
		"tickTime=100", "minSessionTimeout=300", "maxSessionTimeout=7000",
	} {
		require.Contains(t, conf, line+"\n")
	}

	conn, path := dial(t, c), zkserver.Path(t)
	_, err = conn.CreateContainer(path, nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	create(t, conn, path+"/child", "")
	require.NoError(t, conn.Delete(path+"/child", 0))
	require.Eventually(t, func() bool {
		there, _, err := conn.Exists(path)
		return err == nil && !there
	}, within, 20*time.Millisecond, "by default it would stay for a minute")
}

func TestPath(t *testing.T) {
	t.Parallel()
	t.Run("a/b c", func(t *testing.T) {
		t.Parallel()
		path := zkserver.Path(t)
		require.Regexp(t, `^/TestPath-a-b_c-[A-Z2-7]{10}$`, path)
		require.NotEqual(t, path, zkserver.Path(t))
	})
}
