package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

func TestParseACL(t *testing.T) {
	for value, want := range map[string]zk.ACL{
		"world:anyone:r":         {Scheme: "world", ID: "anyone", Perms: zk.PermRead},
		"auth::cdrwa":            {Scheme: "auth", Perms: zk.PermAll},
		"digest:bob:hash=:cd":    {Scheme: "digest", ID: "bob:hash=", Perms: 4 | 8},
		"ip:10.0.0.0/8:wa":       {Scheme: "ip", ID: "10.0.0.0/8", Perms: 2 | 16},
		"x509:CN=a:b, O=c d:rwr": {Scheme: "x509", ID: "CN=a:b, O=c d", Perms: 3},
	} {
		got, err := parseACL(value)
		require.NoError(t, err)
		require.Equal(t, []zk.ACL{want}, got, value)
	}
	for value, why := range map[string]string{
		"":                "want creator, world or SCHEME:ID:PERMS",
		"anyone":          "want creator, world or SCHEME:ID:PERMS",
		"world:anyone":    "want creator, world or SCHEME:ID:PERMS",
		":anyone:r":       "want creator, world or SCHEME:ID:PERMS",
		"world:anyone:":   "has no permission; give some of cdrwa",
		"world:anyone:rx": `'x' is no permission; give some of cdrwa`,
	} {
		_, err := parseACL(value)
		require.ErrorContains(t, err, why, value)
		require.Equal(t, exitUsage, codeOf(err))
	}
}

func TestRights(t *testing.T) {
	for _, c := range []struct {
		given connection
		want  []zk.ACL
	}{
		{connection{}, zk.WorldACL(zk.PermAll)},
		{connection{auth: []string{"digest:u:p"}}, zk.AuthACL(zk.PermAll)},
		{
			connection{auth: []string{"digest:u:p"}, acl: []string{"world"}},
			zk.WorldACL(zk.PermAll),
		},
		{
			connection{acl: []string{"world:anyone:r", "ip:::1:cdrwa"}},
			[]zk.ACL{{Perms: 1, Scheme: "world", ID: "anyone"}, {
				Perms: zk.PermAll, Scheme: "ip", ID: "::1",
			}},
		},
		{connection{tlsCert: "c"}, zk.AuthACL(zk.PermAll)},
		{connection{tlsCert: "c", acl: []string{"creator"}}, zk.AuthACL(zk.PermAll)},
	} {
		got, err := c.given.rights()
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := (&connection{acl: []string{"creator"}}).rights()
	require.ErrorContains(t, err,
		"--acl creator: needs --auth, a SASL login, or --tls-cert")
}

// eachServer runs a test on zktest, and with MUST on a ZooKeeper.
func eachServer(t *testing.T, test func(t *testing.T, servers string)) {
	t.Helper()
	t.Run("zktest", func(t *testing.T) { test(t, zktest.Start(t).ConnectString()) })
	if os.Getenv("MUST") != "" {
		t.Run("ZooKeeper", func(t *testing.T) { test(t, startZooKeeper(t)) })
	}
}

// startZooKeeper starts the server that Debian's packages, or ZOOKEEPER_HOME, have.
func startZooKeeper(t *testing.T) string {
	t.Helper()
	jars := "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar"
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		jars = filepath.Join(home, "conf") + ":" + filepath.Join(home, "lib", "*")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().(*net.TCPAddr)
	require.NoError(t, free.Close())
	dir := t.TempDir()
	config := filepath.Join(dir, "zoo.cfg")
	lines := fmt.Appendf(nil, "dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\n"+
		"admin.enableServer=false\nforceSync=no\n4lw.commands.whitelist=*\n", dir,
		address.Port)
	require.NoError(t, os.WriteFile(config, lines, 0o600))
	server := exec.Command("java", "-cp", jars,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
	})
	require.Eventually(t, func() bool { return askVersion(address.String(), nil) != "" },
		patience, 50*time.Millisecond, "the server does not answer")
	return address.String()
}

// underLock runs a command of zklock's on one machine, which stays until the test ends.
func underLock(t *testing.T, servers string, args ...string) {
	t.Helper()
	cmd := exec.Command("zklock", args...)
	cmd.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+servers)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
}

// examine runs a command of zklock's to its end.
func examine(t *testing.T, servers string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.Command("zklock", args...)
	cmd.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+servers)
	text, err := cmd.CombinedOutput()
	if ended := (&exec.ExitError{}); !errors.As(err, &ended) {
		require.NoError(t, err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// connectAlone connects with go-zookeeper alone. By itself it gives a server a second to
// take the connection, and all that is asked meanwhile fails.
func connectAlone(servers []string) (*zk.Conn, error) {
	conn, _, err := zk.Connect(servers, patience, zk.WithLogInfo(false), zk.WithDialer(
		func(network, address string, _ time.Duration) (net.Conn, error) {
			return net.DialTimeout(network, address, patience)
		}))
	return conn, err
}

// session is one of go-zookeeper's alone, with credentials or without.
func session(t *testing.T, servers, credentials string) *zk.Conn {
	t.Helper()
	conn, err := connectAlone(strings.Split(servers, ","))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	if credentials != "" {
		require.NoError(t, conn.AddAuth("digest", []byte(credentials)))
	}
	return conn
}

// treeBelow are the paths of all znodes below a path, that one first.
func treeBelow(t *testing.T, conn *zk.Conn, path string) []string {
	t.Helper()
	children, _, err := conn.Children(path)
	if errors.Is(err, zk.ErrNoNode) { // an ephemeral one that has gone
		return nil
	}
	require.NoError(t, err, path)
	all := []string{path}
	for _, child := range children {
		all = append(all, treeBelow(t, conn, path+"/"+child)...)
	}
	return all
}

// What zklock makes with credentials, whoever has none can neither read nor change nor
// delete: all kinds of znodes that there are, the chroot and the record of once among
// them.
func TestStrangersMayNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, servers string) {
		const secret = "user:hunter2"
		for _, args := range [][]string{
			{"run", "/locks/a", "sleep", "1000"},
			{"run", "-s", "/locks/r", "sleep", "1000"},
			{"run", "--semaphore", "2", "/locks/s", "sleep", "1000"},
			{"once", "--per", "24h", "/cron/a", "sleep", "1000"},
			{"lead", "/leaders/a", "sleep", "1000"},
			{"register", "/services/a", "sleep", "1000"},
		} {
			underLock(t, servers+"/app/one",
				append([]string{"--auth", "digest:" + secret}, args...)...)
		}
		own := session(t, servers, secret)
		var all []string
		require.Eventually(t, func() bool {
			exists, _, err := own.Exists("/app/one")
			if err != nil || !exists {
				return false
			}
			all = treeBelow(t, own, "/app")
			return len(all) == 21
		}, patience, 50*time.Millisecond, "%q", &all)

		stranger := session(t, servers, "")
		for _, path := range all {
			_, _, err := stranger.Get(path)
			require.ErrorIs(t, err, zk.ErrNoAuth, path)
			_, _, err = stranger.Children(path)
			require.ErrorIs(t, err, zk.ErrNoAuth, path)
			_, err = stranger.Set(path, []byte("forged"), -1)
			require.ErrorIs(t, err, zk.ErrNoAuth, path)
			_, err = stranger.SetACL(path, zk.WorldACL(zk.PermAll), -1)
			require.ErrorIs(t, err, zk.ErrNoAuth, path)
			_, err = stranger.Create(path+"/x-lock-0000000000", nil, 0,
				zk.WorldACL(zk.PermAll))
			require.ErrorIs(t, err, zk.ErrNoAuth, path)
			err = stranger.Delete(path, -1)
			if path == "/app" { // DELETE is the root's right, and the world has it there
				require.ErrorIs(t, err, zk.ErrNotEmpty)
				continue
			}
			require.ErrorIs(t, err, zk.ErrNoAuth, path)
		}
		require.Len(t, treeBelow(t, own, "/app"), len(all))
	})
}

// What ACLs do not reach: DELETE is a right of the parent, and a directory that was there
// before keeps its own. Whether a znode exists, and since when, anybody may ask.
func TestWhatACLsDoNotReach(t *testing.T) {
	eachServer(t, func(t *testing.T, servers string) {
		stranger := session(t, servers, "")
		_, err := stranger.Create("/open", nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		underLock(t, servers, "--auth", "digest:user:hunter2", "run", "/open",
			"sleep", "1000")
		var children []string
		require.Eventually(t, func() bool {
			children, _, err = stranger.Children("/open")
			return err == nil && len(children) == 2
		}, patience, 10*time.Millisecond)
		node := "/open/" + children[0]
		exists, stat, err := stranger.Exists(node)
		require.NoError(t, err)
		require.True(t, exists)
		require.NotZero(t, stat.Ctime)
		_, _, err = stranger.Get(node)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		_, err = stranger.Set(node, nil, -1)
		require.ErrorIs(t, err, zk.ErrNoAuth)
		for _, flags := range [][]string{nil, {"--auth", "digest:user:hunter2"}} {
			out, found := examine(t, servers, append(flags, "doctor", "/open")...)
			require.Equal(t, exitFindings, found, out)
			require.Contains(t, out, "BAD /open: world:anyone has CREATE, DELETE, ADMIN")
		}
		require.NoError(t, stranger.Delete(node, -1))
	})
}
