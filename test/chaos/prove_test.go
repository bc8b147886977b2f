//go:build unix

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// TestProveOnServersWithFaults has "zklock prove" on an ensemble whose servers have the
// faults of TestChaos, which it makes none of itself. It may find nothing, or decide
// nothing; but what it finds are the servers, by the witness here and by their logs, and
// it does not overlook that they forget. It goes on for as long as CHAOS_PROVE says.
func TestProveOnServersWithFaults(t *testing.T) {
	zkserver.Real(t, "processes that can be killed")
	text := os.Getenv("CHAOS_PROVE")
	if text == "" {
		t.Skip("it tests zklock prove: set CHAOS_PROVE to a duration, such as 30m")
	}
	length, err := time.ParseDuration(text)
	require.NoError(t, err, "CHAOS_PROVE")
	program := filepath.Join(t.TempDir(), "zklock")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../../cmd/zklock"
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for began := time.Now(); time.Since(began) < length; {
		proveOnce(t, program)
	}
}

// proveOnce makes a run on an ensemble of its own.
func proveOnce(t *testing.T, program string) {
	t.Helper()
	const work = 40 * time.Second
	timing, seed := chaosTimings[0], rand.Uint64()
	e := startEnsemble(t, 1, timing.servers()...)
	w := startWitness(t, e.addrs())
	n := &nemesis{
		e: e, session: timing.session, holds: func(int) int { return 0 },
		Hands: faults.Hands{Note: func(string, ...any) {}},
	}
	ctx, cancel := context.WithTimeout(t.Context(), work)
	defer cancel()
	faulty := make(chan error, 1)
	go func() {
		faulty <- n.Run(ctx, seed, faults.Hand{
			Rest: 2 * n.session, Faults: n.ofServers(),
		})
	}()
	cmd := exec.CommandContext(t.Context(), program, "prove", "--for", work.String(),
		"--servers", strings.Join(e.addrs(), ","), "--session-timeout",
		timing.session.String(), "--connect-timeout", "1m") // servers may be down
	said, err := cmd.CombinedOutput()
	require.NoError(t, <-faulty)
	forgotten := w.Finish()
	broken := errors.Join(forgotten, e.diverged())
	report := fmt.Sprintf("seed %d, the servers: %v\n%s", seed, broken, said)
	t.Log(report)
	switch code := cmd.ProcessState.ExitCode(); code {
	case 0:
		require.Less(t, lost(forgotten), 200, "some seconds of writes\n%s", report)
	case 1:
		require.Error(t, broken, "the library is to blame: %s", report)
	default: // it cannot decide, or not even begin
		require.Contains(t, []int{3, 69}, code, "%v: %s", err, report)
	}
	require.NoError(t, e.Close())
}

// lost is how many writes of the witness are forgotten.
func lost(forgotten error) int {
	if forgotten == nil {
		return 0
	}
	var numbers []int
	for _, found := range regexp.MustCompile(`the write (\d+)`).
		FindAllStringSubmatch(forgotten.Error(), -1) {
		n, _ := strconv.Atoi(found[1]) // it has only digits
		numbers = append(numbers, n)
	}
	if len(numbers) < 2 { // the znode itself
		return numbers[0]
	}
	return numbers[0] - numbers[1] + 1
}
