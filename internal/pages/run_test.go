package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// container is the harness of a block that starts a container. That takes an engine, an
// image, and modules that the library does not need: the block is left out unless MUST is
// set, and may be skipped then.
const container = "container"

// TestEveryBlockRuns compiles and vets all blocks, has the harnesses run them, and looks
// at what they reached.
func TestEveryBlockRuns(t *testing.T) {
	t.Parallel()
	m := newModule(t)
	profile := filepath.Join(m.dir, "profile")
	_, out, err := m.run(t, "vet", "./...")
	require.NoError(t, err, out)
	_, out, err = m.run(t, "test", "-v", "-vet=off", "-timeout=3m",
		"-coverpkg=./...", "-coverprofile="+profile, ".")
	require.NoError(t, err, out)
	ran := reached(t, profile)
	for _, s := range m.sources {
		switch {
		case s.isProgram(): // TestEveryProgramRuns
		case strings.Contains(out, "--- SKIP: TestBlocks/"+s.where()+" ("):
			require.Equal(t, container, s.harness, "%s was skipped", s.where())
			t.Logf("%s was not run: no container engine answers", s.where())
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
		code := strings.Replace(s.code, server, cluster.ConnectString(), 1)
		m.write(t, filepath.Join(s.pkg, s.pkg+".go"),
			work.ReplaceAllString(code, "time.After(time.Second)"))
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

// work is what a program of a page does for so long that a reader can follow.
var work = regexp.MustCompile(`time\.After\(\d+ \* time\.Second\)`)

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
