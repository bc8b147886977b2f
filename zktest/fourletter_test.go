package zktest_test

import (
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// TestFourLetterWordsAreTheRealServers asks zktest and a real server in the same state,
// and wants the same answers but for times, addresses, ids and the build.
func TestFourLetterWordsAreTheRealServers(t *testing.T) {
	needsGenuine(t)
	const longest = time.Hour // no ping comes in between, even if all stands still
	for name, servers := range map[string]int{"standalone": 1, "ensemble": 3} {
		t.Run(name, func(t *testing.T) {
			genuine := zkserver.Start(t, zkserver.Servers(servers), zkserver.Tick(tick),
				zkserver.MaxSession(longest))
			fake := zktest.Start(t, zktest.WithServers(servers), zktest.WithTick(tick),
				zktest.WithMaxSession(longest))
			// Which one of an ensemble leads is a matter of its election.
			all := append(strings.Split(genuine.Connect(), ","), fake.Addrs()...)
			for i, addr := range all {
				id := i%servers + 1
				if servers == 1 {
					id = 0
				}
				conf := mustTell(t, addr, "conf")
				require.Contains(t, conf, fmt.Sprintf("\nserverId=%d\n", id))
			}
			for role, addr := range roles(t, fake.Addrs()) {
				t.Run(role, func(t *testing.T) {
					compareWords(t, roles(t, genuine.Connect())[role], addr)
				})
			}
		})
	}
}

// roles returns a server for each of the modes that there are.
func roles(t *testing.T, servers any) map[string]string {
	t.Helper()
	addrs, ok := servers.([]string)
	if !ok {
		addrs = strings.Split(servers.(string), ",")
	}
	found := map[string]string{}
	for _, addr := range addrs {
		_, after, _ := strings.Cut(mustTell(t, addr, "srvr"), "Mode: ")
		mode, _, _ := strings.Cut(after, "\n")
		require.NotEmpty(t, mode)
		found[mode] = addr
	}
	return found
}

func compareWords(t *testing.T, genuine, fake string) {
	t.Helper()
	var answers [2]map[string]string
	for i, addr := range []string{genuine, fake} {
		stop := occupy(t, addr)
		answers[i] = map[string]string{}
		for _, word := range []string{
			"cons", "srvr", "stat", "dump", "wchs", "wchc", "wchp", "isro", "ruok",
			"envi", "conf", "mntr", "what",
		} {
			answers[i][word], _ = tell(addr, word) // there is none to the last
		}
		stop()
	}
	for word, want := range answers[0] {
		got := answers[1][word]
		switch word {
		case "envi":
			require.Equal(t, keys(want, "="), keys(got, "="), word)
		case "conf":
			require.Equal(t, keys(want, "="), keys(got, "="), word)
			settings := regexp.MustCompile(`(?m)^(tickTime|m.+Timeout)=.*`)
			require.Len(t, settings.FindAllString(got, -1), 3)
			require.Equal(t, settings.FindAllString(want, -1),
				settings.FindAllString(got, -1))
			require.Equal(t, strings.HasSuffix(want, "\n"), strings.HasSuffix(got, "\n"))
		case "mntr":
			require.Subset(t, keys(want, "\t"), keys(got, "\t"), word)
			counts := regexp.MustCompile(`(?m)^zk_(server_state|peer_state|.*_count|` +
				`global_sessions|num_.*|quorum_size|pending_syncs|` +
				`outstanding_requests|synced_followers|learners)\t.*$`)
			for _, line := range counts.FindAllString(got, -1) {
				require.Contains(t, "\n"+want, "\n"+line+"\n")
			}
			require.GreaterOrEqual(t, len(keys(got, "\t")), 16)
		default:
			require.Equal(t, steady(want), steady(got), word)
		}
	}
}

// occupy makes a session with znodes and watches.
func occupy(t *testing.T, addr string) (stop func()) {
	t.Helper()
	conn, _, err := zk.Connect([]string{addr}, time.Hour, zk.WithLogger(noLog{}))
	require.NoError(t, err)
	for path, flags := range map[string]int32{"/four": 0, "/letters": zk.FlagEphemeral} {
		_, err := conn.Create(path, []byte("x"), flags, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
	_, _, _, err = conn.GetW("/four")
	require.NoError(t, err)
	_, _, _, err = conn.ChildrenW("/")
	require.NoError(t, err)
	_, _, _, err = conn.ExistsW("/letters")
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the real one sends first, and then counts
		return strings.Contains(mustTell(t, addr, "cons"), "(queued=0,recved=6,sent=6,")
	}, 10*time.Second, time.Millisecond)
	return func() {
		require.NoError(t, conn.Delete("/four", -1))
		conn.Close()
	}
}

func mustTell(t *testing.T, addr, word string) string {
	t.Helper()
	answer, err := tell(addr, word)
	require.NoError(t, err)
	return answer
}

// keys are what stands before a separator in each line, sorted.
func keys(text, separator string) []string {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		key, _, ok := strings.Cut(strings.TrimRight(line, "\n"), separator)
		if ok {
			found[key] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

var unsteady = []struct{ what, by string }{
	{`Zookeeper version: (3\.8\.0)-\S+, built on .* UTC`, "version $1"},
	{`127\.0\.0\.1:\d+`, "ADDRESS"},
	{`expire at \w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ 20\d\d:`, "expire"},
	{`(Latency min/avg/max:) \d+/\d+\.\d+/\d+`, "$1 N"},
	{`(?m)^(Received|Sent): \d+$`, "$1: N"}, // those who waited for it have asked, too
	{`(Proposal sizes last/min/max): -?\d+/-?\d+/-?\d+`, "$1: N"},
	{`(est|lresp|llat|minlat|avglat|maxlat)=\d+`, "$1=N"},
	{`0x[0-9a-f]{12,}`, "SESSION"},
	{`(?m)^0 expire\n`, ""},                               // of those that are gone
	{`(Session|Connections) Sets \(\d+\)`, "$1 Sets (N)"}, // empty ones count
	{`\[\d\]\(queued=\d`, "[N](queued=N"},                 // its answer may be on its way
	{`(?m)^\d+ expire\n\tip`, "\tip"},                     // its are tens of seconds
}

// steady replaces what differs from run to run, and sorts the connections.
func steady(answer string) string {
	for _, r := range unsteady {
		answer = regexp.MustCompile(r.what).ReplaceAllString(answer, r.by)
	}
	lines := strings.SplitAfter(answer, "\n")
	slices.SortStableFunc(lines, func(a, b string) int {
		if !strings.Contains(a, "ADDRESS") || !strings.Contains(b, "ADDRESS") {
			return 0
		}
		return strings.Compare(a, b)
	})
	return strings.Join(lines, "")
}

// What parses the answers of a real server parses these, but that go-zookeeper expects
// another form of the date than servers since 3.6 have.
func TestFourLetterWordsParse(t *testing.T) {
	cluster := zktest.Start(t)
	addr := cluster.Addrs()[0]
	occupy(t, addr)
	stats, ok := zk.FLWSrvr([]string{addr}, time.Second)
	require.True(t, ok, "%+v", stats[0])
	require.Equal(t, "3.8.0-zktest", stats[0].Version)
	require.Equal(t, zk.ModeStandalone, stats[0].Mode)
	require.EqualValues(t, 2, stats[0].Connections)
	require.EqualValues(t, 7, stats[0].NodeCount)
	require.EqualValues(t, cluster.Server(0).Zxid(), stats[0].Counter)
	require.GreaterOrEqual(t, stats[0].Received, int64(7), "with this one")
	require.Equal(t, stats[0].Received-1, stats[0].Sent)
	require.Equal(t, []bool{true}, zk.FLWRuok([]string{addr}, time.Second))
	// It finds fault with the line of its own connection, a real server's too.
	clients, _ := zk.FLWCons([]string{addr}, time.Second)
	require.Len(t, clients[0].Clients, 1)
	client := clients[0].Clients[0]
	require.Equal(t, cluster.Sessions(), []int64{client.SessionID})
	require.Equal(t, "EXIS", client.LastOperation)
	require.EqualValues(t, 6, client.Received)
	host, _, err := net.SplitHostPort(client.Addr)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
}
