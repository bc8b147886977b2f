package crew_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/crew"
	"github.com/zkrecipes/recipes/bench/internal/load"
)

// TestMain makes workers of this program: what they are to do is in the path of a load.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		work()
		return
	}
	os.Exit(m.Run())
}

func work() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch {
		case strings.Contains(lines.Text(), "hang"):
			select {}
		case strings.Contains(lines.Text(), "crash"):
			fmt.Fprintln(os.Stderr, "out of locks")
			os.Exit(1)
		case strings.Contains(lines.Text(), "babble"):
			fmt.Println("what?")
		default:
			fmt.Printf("{\"ops\": %d}\n", os.Getpid())
		}
	}
}

func newCrew(t *testing.T, limit time.Duration) *crew.Crew {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c := crew.New(map[string][]string{"peer": {self, "worker"}}, limit)
	t.Cleanup(c.Close)
	return c
}

func one(t *testing.T, c *crew.Crew, path string) load.Result {
	t.Helper()
	results := c.Do(t.Context(), "peer", 1, load.Load{Path: path})
	require.Len(t, results, 1)
	return results[0]
}

func TestAWorkerDoesOneLoadAfterTheOther(t *testing.T) {
	c := newCrew(t, time.Minute)
	first := one(t, c, "/a")
	require.Empty(t, first.Fault)
	require.Equal(t, first.Ops, one(t, c, "/b").Ops, "it is the same process")
	both := c.Do(t.Context(), "peer", 2, load.Load{})
	require.NotEqual(t, both[0].Ops, both[1].Ops, "two are two processes")
}

func TestAWorkerThatFailsIsReplaced(t *testing.T) {
	for path, says := range map[string]string{
		"crash": "out of locks", "babble": "what?",
	} {
		t.Run(path, func(t *testing.T) {
			c := newCrew(t, time.Minute)
			before := one(t, c, "/a")
			require.Contains(t, one(t, c, path).Fault, says)
			after := one(t, c, "/b")
			require.Empty(t, after.Fault)
			require.NotEqual(t, before.Ops, after.Ops)
		})
	}
}

func TestAWorkerThatHangsIsGivenUp(t *testing.T) {
	c := newCrew(t, 10*time.Millisecond)
	require.Contains(t, one(t, c, "hang").Fault, "stuck")
}

func TestAnInterruptGivesUpAtOnce(t *testing.T) {
	c := newCrew(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	require.NotEmpty(t, c.Do(ctx, "peer", 1, load.Load{Path: "hang"})[0].Fault)
}

func TestAPeerWithoutWorkers(t *testing.T) {
	c := newCrew(t, time.Minute)
	require.NotEmpty(t, c.Do(t.Context(), "stranger", 1, load.Load{})[0].Fault)
}
