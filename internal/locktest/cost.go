package locktest

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// Heap is what is in use after all garbage was collected.
func Heap() int64 {
	runtime.GC()
	runtime.GC() // what the first has finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) // no heap is that large
}

// AwaitOwnWatch waits until p's only hold, since it lasts, has a watch.
func AwaitOwnWatch(t *testing.T, p *Peer) {
	t.Helper()
	Eventually(
		t, func() bool { return len(p.Watching()) == 1 }, "the hold is not watched",
	)
}

// WatchersOf returns how many sessions watch each znode, as the server tells: a path to a
// line, and below it its sessions.
func WatchersOf(t *testing.T, server *zkserver.Server) map[string]int {
	t.Helper()
	answer, err := server.FourLetter("wchp")
	require.NoError(t, err)
	watchers, node := map[string]int{}, ""
	for line := range strings.Lines(answer) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "/"):
			node = line
		case strings.HasPrefix(line, "0x"):
			watchers[node]++
		}
	}
	require.NotEmpty(t, watchers)
	return watchers
}
