package zktest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// readOnly is played to the one server of three that is left.
const readOnly = `
	r0 connect
	r0 connect readonly old
	r1 connect readonly
	r1 getData /a watch
	r1 getChildren2 .
	r1 exists /missing watch
	r1 whoAmI
	r1 getEphemerals !/
	r1 countChildren .
	r1 create /a/b x
	r1 create2 /b x
	r1 createContainer /b x container
	r1 delete /a -1
	r1 setData /a y -1
	r1 setACL /a world:r -1
	r1 sync .
	r1 check /a -1
	r1 multi check /a -1
	r1 multiRead getData /a
	r1 reconfig null 3 null -1
	r1 getData /a
	r3 connect as=r1 readonly zxid=100
	r4 connect as=r1 readonly
	r4 getData /a
	r5 connect as=r1 readonly password=wrong
	r4 connect as=r1 readonly
	r4 closeSession
	r4 getData /a
	r6 connect id=77 readonly
`

// TestConformanceReadOnlyMode compares what a server without a leader is to clients.
func TestConformanceReadOnlyMode(t *testing.T) {
	zkserver.Real(t, "its settings by flags of Java")
	genuine := zkserver.Start(t, zkserver.Servers(3), zkserver.Tick(tick),
		zkserver.MaxSession(usual), zkserver.Config("localSessionsEnabled=true",
			"localSessionsUpgradingEnabled=true"),
		zkserver.JVM("-Dreadonlymode.enabled=true"))
	fake := zktest.Start(t, zktest.WithServers(3), zktest.WithTick(tick),
		zktest.WithMaxSession(usual), zktest.WithReadOnlyMode())
	base := zkserver.Path(t)
	theirs := readOnlyPlayer(t, genuine.Servers[0].Addr, base)
	ours := readOnlyPlayer(t, fake.Addrs()[0], base)
	for i := range 2 {
		require.NoError(t, genuine.Servers[i+1].Kill())
		fake.Server(i + 1).Stop()
	}
	script := parseScript(readOnly)
	var transcripts [2][][]string
	for i, p := range []*player{theirs, ours} {
		require.Eventually(t, func() bool {
			answer, err := tell(p.addr, "isro")
			return err == nil && answer == "ro"
		}, patience, tick/10)
		for _, s := range script {
			transcripts[i] = append(transcripts[i], p.step(s))
		}
		for _, one := range p.roles {
			one.end()
		}
		require.Contains(t, mustTell(t, p.addr, "srvr"), "Mode: read-only\n")
	}
	require.Empty(t, differences(script, transcripts[0], transcripts[1]))
}

// readOnlyPlayer returns a player below a node with a child, which a server knows.
func readOnlyPlayer(t *testing.T, addr, base string) *player {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, usual, zk.WithLogger(silent{}))
	require.NoError(t, err)
	t.Cleanup(conn.Close) // not before: the end of a session can take a zxid
	_, err = conn.Create(base, nil, 0, anyone)
	require.NoError(t, err)
	_, stat, err := conn.Exists(base)
	require.NoError(t, err)
	_, err = conn.Create(base+"/a", []byte("x"), 0, anyone)
	require.NoError(t, err)
	return &player{
		addr: addr, dial: dialTCP(addr), base: base, zero: stat.Czxid, names: map[int64]string{},
		count: map[string]int{}, live: map[int64]grant{}, roles: map[string]role{},
	}
}

// TestReadOnlyMode ends when there is a leader again, and with it the sessions that only
// this server knew. Those of the ensemble have lived on.
func TestReadOnlyMode(t *testing.T) {
	c := zktest.Start(t, zktest.WithServers(3), zktest.WithReadOnlyMode(),
		zktest.WithTick(20*time.Millisecond))
	others := without(c.Servers(), c.Servers()[0])
	before := dialRaw(t, c.Link("before"), c.Server(0)).open(time.Minute)
	for _, s := range others {
		s.Stop()
	}
	require.True(t, before.closed())
	during := &rawClient{}
	require.Eventually(t, func() bool {
		during = dialRaw(t, c.Link("during"), c.Server(0))
		during.send(readOnlyGreeting(&rawClient{secret: make([]byte, 16)}))
		return during.welcome()
	}, patience, 50*time.Millisecond)
	for _, packet := range [][]byte{
		readOnlyGreeting(before), greeting(&rawClient{}, time.Minute, 0),
	} {
		refused := dialRaw(t, c.Link("refused"), c.Server(0))
		refused.send(packet)
		require.False(t, refused.welcome())
	}
	again := dialRaw(t, c.Link("during"), c.Server(0))
	again.send(readOnlyGreeting(during))
	require.True(t, again.welcome())
	for _, s := range others {
		s.Start()
	}
	require.True(t, again.closed())
	require.Eventually(t, func() bool { return c.Leader() != nil }, patience, tick/10)
	require.False(t, dialRaw(t, c.Link("during"), c.Server(0)).reopen(during))
	again = dialRaw(t, c.Link("before"), c.Server(0))
	require.True(t, again.reopen(before))
	again.send(creation(1, "/a", 0))
	require.Equal(t, outcome{xid: 1}, again.answer())
	require.True(t, strings.HasPrefix(mustTell(t, c.Addrs()[0], "isro"), "rw"))
}

// readOnlyGreeting is a greeting of a client that is content with reads.
func readOnlyGreeting(old *rawClient) []byte {
	packet := greeting(old, time.Minute, 0)
	packet[len(packet)-1] = 1
	return packet
}
