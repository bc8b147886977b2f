package simulator_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/acceptor"
	"github.com/zkrecipes/recipes/internal/simulator"
)

// traced is the lock of a trace.
var traced = simulator.DefaultLocks("/locks")[0]

// defaultTraces is how many seeds a plain run of TestTraces tries.
const defaultTraces = 40

// TestTraces demands that the acceptor takes the traces of simulated ensembles under
// faults, in which all contend for one mutex. SIM_TRACES=n tries n seeds from SIM_FROM
// on. SIM_TRACE=DIR keeps each trace there, as NDJSON.
func TestTraces(t *testing.T) {
	if !raceDetector { // as for TestSimulator
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	from, ok := number(t, "SIM_FROM")
	if !ok {
		from = 1
	}
	seeds, ok := number(t, "SIM_TRACES")
	if !ok {
		seeds = defaultTraces
		if raceDetector { // which makes it slow
			seeds /= 4
		}
	}
	lines := 0
	for seed := from; seed < from+seeds && !t.Failed(); seed++ {
		trace := traceOf(t, seed)
		lines += len(trace)
		if err := acceptor.Accept(trace); err != nil {
			t.Errorf("seed %d is rejected: %v", seed, err)
		}
	}
	t.Logf("%d traces of %d lines", seeds, lines)
}

// traceOf runs a seed, and returns what happened to the mutex.
func traceOf(t *testing.T, seed uint64) []acceptor.Line {
	t.Helper()
	r := simulateIn(t, newScene(seed).ofTrace(seed), seed, false)
	if r.err != nil {
		t.Logf("seed %d: the simulator finds: %v", seed, strings.SplitN(
			r.err.Error(), "\n", 2)[0])
	}
	text := ndjson(t, r.history)
	if dir := os.Getenv("SIM_TRACE"); dir != "" {
		name := filepath.Join(dir, fmt.Sprintf("seed-%d.ndjson", seed))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	return read(t, text)
}

// ndjson is the trace in a history.
func ndjson(t *testing.T, h simulator.History) string {
	t.Helper()
	var text strings.Builder
	for _, e := range h {
		if e.Kind != simulator.Note {
			line, err := json.Marshal(e)
			require.NoError(t, err)
			text.Write(append(line, '\n'))
		}
	}
	return text.String()
}

func read(t *testing.T, text string) []acceptor.Line {
	t.Helper()
	trace, err := acceptor.Read(strings.NewReader(text))
	require.NoError(t, err)
	return trace
}

// ofTrace is the scene with one mutex, whose znodes are not kept for the next owner. In
// every other one the znodes of a session go when it ends, so that who is told too late
// is so in the servers' order.
func (s scene) ofTrace(seed uint64) scene {
	s.traced, s.locks, s.cached, s.election = true, []simulator.Lock{traced}, 0, false
	s.denied = false
	if seed%2 == 0 {
		s.slowClose, s.slowCommit = 0, 0
	}
	return s
}

// kind says what a worker's client is like, for its lines in a trace.
func (s scene) kind(worker int) (kind string) {
	if of(s.late, worker) {
		kind += "late "
	}
	if of(s.bare, worker) {
		kind += "plain"
	}
	return kind
}
