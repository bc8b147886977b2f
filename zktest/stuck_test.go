package zktest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// TestStuckInABubble is stuck, where it is asked to be: in a run of its own. That ends,
// and says who waits for what.
func TestStuckInABubble(t *testing.T) {
	if os.Getenv("STUCK") != "" {
		synctest.Test(t, func(t *testing.T) {
			link := zktest.Start(t).Link("stuck")
			cl := connect(t, link, oneServer("x"), sessionTimeout)
			_, _, never, err := cl.GetW("/")
			require.NoError(t, err)
			waitForever(never)
		})
	}
	run := exec.Command(os.Args[0], "-test.run=^TestStuckInABubble$")
	run.Env = append(os.Environ(), "STUCK=yes")
	began := time.Now()
	out, err := run.CombinedOutput()
	t.Log("it took", time.Since(began))
	require.Error(t, err)
	text := strings.ReplaceAll(string(out), "\n\t", "\n") // as a panic has it
	require.Contains(t, text, "zktest: 168h0m0s of virtual time have passed: the test "+
		"is stuck. What its goroutines wait for:\n\ngoroutine ")
	// It is said for how many minutes, too, where the machine took that long.
	require.Regexp(t, `goroutine \d+ \[chan receive \(durable\),.* synctest bubble \d+`+
		`\]:\n\S*zktest_test\.waitForever\b`, text)
	require.NotContains(t, text, "zktest.(*conn).")
}

//go:noinline
func waitForever[T any](never <-chan T) { <-never }

// TestTimeLimit is not that of a Cluster that has ended before.
func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 3 {
			c := newCluster(t, zktest.WithTimeLimit(time.Hour))
			time.Sleep(time.Hour - 1)
			c.Close()
		}
	})
	_, err := zktest.New(zktest.WithTimeLimit(0))
	require.EqualError(t, err, "zktest: WithTimeLimit(0s): want more than 0")
}

// Whoever connects to TCP in a bubble would wait forever, at full speed.
func TestAddrsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		for name, ask := range map[string]func(){
			"Addrs":         func() { cluster.Addrs() },
			"ConnectString": func() { cluster.ConnectString() },
		} {
			require.PanicsWithValue(t, "zktest: a listener would keep the time of the "+
				"testing/synctest bubble from passing: connect to Servers, by the Dial "+
				"of a Link", ask, name)
		}
	})
}
