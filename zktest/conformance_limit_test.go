package zktest_test

import (
	"hash/adler32"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// atTheLimit is played below a node whose next sequential child gets 2147483645.
const atTheLimit = `
	c0 create /n- x sequence
	c0 exists .
	c0 childrenW .
	c0 create /n- x ephemeralSequence
	c0 childrenW .
	c0 create /n- x sequence
	c0 exists .
	c0 childrenW .
	# here the counter sticks, and with it cversion and pzxid
	c0 create /n- x sequence
	c0 create /m- x sequence
	c0 exists .
	c0 childrenW .
	c0 create /plain x
	c0 exists .
	# unless several creates are under way at once
	c0 multi create /k- x sequence ; create /k- x sequence ; create /k- x sequence
	c0 children .
	c0 create /l- x sequence
	c0 multi delete /n-2147483647 ; create /n- x sequence ; create /n- x ephemeralSequence ; create /n- x sequence
	c0 exists .
	# so a watch does not hear of a child that came while its connection was away;
	# it hears of one that went
	c0 childrenW .
	c0 down
	c1 create /missed x
	c0 up
	c0 exists .
	c0 down
	c1 delete /missed
	c0 up
	c0 exists .
	c0 delete /plain
	c0 exists .
	c0 create /l2- x sequence
	c0 close
	c1 children .
`

// TestConformanceSequenceLimit compares what happens where the counter of sequential
// nodes ends. A real server gets there by a transaction log that says so.
func TestConformanceSequenceLimit(t *testing.T) {
	needsGenuine(t)
	const parent, next = "/limit", math.MaxInt32 - 2
	zookeeper := zkserver.Start(t, zkserver.Tick(tick), zkserver.MaxSession(usual),
		zkserver.Config("dataLogDir="+logWithCounter(t, parent, next)),
		zkserver.JVM("-Dzookeeper.snapshot.trust.empty=true"))
	if zookeeper.Kind() != "local" {
		t.Skip("a server in a container does not see our transaction log")
	}
	genuine := mustPlay(t, zookeeper.Servers[0].Addr, nil)
	defer genuine.close()
	cluster := zktest.Start(t, zktest.WithTick(tick))
	fake := mustPlay(t, cluster.Addrs()[0], nil)
	defer fake.close()
	for _, path := range []string{parent, parent + "/old"} {
		_, err := fake.ruler.Create(path, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	require.NoError(t, cluster.SetSequence(parent, next))

	script := parseScript(atTheLimit)
	play := func(p *player) ([][]string, error) {
		_, err := p.ruler.Create("/zero", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		_, stat, err := p.ruler.Exists("/zero")
		require.NoError(t, err)
		return p.playFrom(parent, stat.Czxid, script)
	}
	difference, err := compare(genuine, fake, script, play)
	require.NoError(t, err)
	require.Empty(t, difference)
}

// logWithCounter makes a directory with a transaction log of two creates: of parent, and
// of a child of it that says which number the next one gets.
func logWithCounter(t *testing.T, parent string, next int32) string {
	t.Helper()
	var log buffer
	log.left = append(log.left, "ZKLG"...)
	log.int32(2) // the version of the format
	log.int64(0)
	logCreate(&log, 1, parent, 1)
	logCreate(&log, 2, parent+"/old", next)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "version-2"), 0o755))
	require.NoError(
		t, os.WriteFile(filepath.Join(dir, "version-2", "log.1"), log.left, 0o644),
	)
	return dir
}

// logCreate appends a CreateTxn, which has the counter that the parent has afterwards.
func logCreate(log *buffer, zxid int64, path string, counter int32) {
	var txn buffer
	txn.int64(1) // the session
	txn.int32(0)
	txn.int64(zxid)
	txn.int64(time.Now().UnixMilli())
	txn.int32(forms["create"].opcode)
	txn.bytes([]byte(path))
	txn.bytes(nil)
	txn.acl(zk.WorldACL(zk.PermAll))
	txn.bool(false)
	txn.int32(counter)
	log.int64(int64(adler32.Checksum(txn.left)))
	log.bytes(txn.left)
	log.left = append(log.left, 'B')
}
