package pages_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
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
	m := newModule(t, keptDir(t))
	profile := filepath.Join(t.TempDir(), "profile")
	_, out, err := m.run(t, "vet", "./...")
	require.NoError(t, err, out)
	_, out, err = m.run(t, "test", "-count=1", "-v", "-vet=off", "-timeout=3m",
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
// know, and has them print what their harness says. A program shows contention: two wait
// in one queue until its reader, who looks at them with zklock, presses Enter.
func TestEveryProgramRuns(t *testing.T) {
	t.Parallel()
	const server = "127.0.0.1:2181"
	m := newModule(t, t.TempDir())
	for _, s := range m.sources {
		if !s.isProgram() {
			continue
		}
		cluster := zktest.Start(t)
		require.Equal(t, 1, strings.Count(s.code, server), s.where())
		code := strings.Replace(s.code, server, cluster.ConnectString(), 1)
		m.write(t, filepath.Join(s.pkg, s.pkg+".go"), code)
		prints, err := os.ReadFile(filepath.Join("testdata", s.harness+".txt"))
		require.NoError(t, err, s.where())
		m.stdin = &patientReader{t.Context(), cluster}
		out, all, err := m.run(t, "run", "./"+s.pkg)
		require.NoError(t, err, all)
		require.Equal(t, string(prints), out, s.where())
	}
}

// A patientReader presses Enter once two are in the queue of a lock.
type patientReader struct {
	ctx     context.Context
	cluster *zktest.Cluster
}

func (r *patientReader) Read(b []byte) (int, error) {
	for r.ctx.Err() == nil {
		queue := 0
		for _, znode := range r.cluster.Znodes() {
			if strings.Contains(znode, "-lock-") {
				queue++
			}
		}
		if queue == 2 {
			return copy(b, "\n"), io.EOF
		}
		time.Sleep(50 * time.Millisecond)
	}
	return 0, context.Cause(r.ctx)
}
