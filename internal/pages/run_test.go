package pages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// mayBeSkipped are the harnesses that skip their blocks on some machines, with the
// reason. All others run everywhere.
var mayBeSkipped = map[string]string{
	"container": "it starts a container, for which an engine and an image are needed",
}

func TestEveryBlockCompiles(t *testing.T) {
	t.Parallel()
	_, out, err := newModule(t).run(t, "vet", "./...")
	require.NoError(t, err, out)
}

// TestEveryBlockRuns has the harnesses run their blocks, and looks at what they reached.
func TestEveryBlockRuns(t *testing.T) {
	t.Parallel()
	m := newModule(t)
	profile := filepath.Join(m.dir, "profile")
	_, out, err := m.run(t, "test", "-v", "-timeout=3m",
		"-coverpkg=./...", "-coverprofile="+profile, ".")
	require.NoError(t, err, out)
	ran := reached(t, profile)
	for _, s := range m.sources {
		switch {
		case s.isProgram(): // TestEveryProgramRuns
		case strings.Contains(out, "--- SKIP: TestBlocks/"+s.where()+" ("):
			require.Contains(t, mayBeSkipped, s.harness, "%s was skipped", s.where())
			t.Logf("%s was not run: %s", s.where(), mayBeSkipped[s.harness])
		default:
			s.requireReached(t, ran[s.pkg])
		}
	}
}

// TestEveryProgramRuns runs those that stand by themselves, on a server that they do not
// know, and has them print what their harness says. A program shows contention: while it
// runs, two wait in one queue.
func TestEveryProgramRuns(t *testing.T) {
	t.Parallel()
	const server = "127.0.0.1:2181"
	m := newModule(t)
	for _, s := range m.sources {
		if !s.isProgram() {
			continue
		}
		cluster := zktest.Start(t)
		require.Equal(t, 1, strings.Count(s.code, server), s.where())
		m.write(t, filepath.Join(s.pkg, s.pkg+".go"),
			strings.Replace(s.code, server, cluster.ConnectString(), 1))
		prints, err := os.ReadFile(filepath.Join("testdata", s.harness+".txt"))
		require.NoError(t, err, s.where())
		ended, longest := make(chan struct{}), make(chan int)
		go func() { longest <- longestQueue(cluster, ended) }()
		out, all, err := m.run(t, "run", "./"+s.pkg)
		close(ended)
		require.NoError(t, err, all)
		require.Equal(t, string(prints), out, s.where())
		require.Equal(t, 2, <-longest, "%s: in the queue at one time", s.where())
	}
}

// longestQueue looks again and again until ended closes, and returns how many znodes of
// locks there were at most.
func longestQueue(cluster *zktest.Cluster, ended <-chan struct{}) int {
	most := 0
	for {
		now := 0
		for _, znode := range cluster.Znodes() {
			if strings.Contains(znode, "-lock-") {
				now++
			}
		}
		most = max(most, now)
		select {
		case <-ended:
			return most
		case <-time.After(50 * time.Millisecond):
		}
	}
}
