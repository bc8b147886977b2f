package simulator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// kept is a place that a process keeps, with three owners who come one after the other,
// while another process waits behind it. Each % is the mode of theirs.
const kept = `
	 1 calm
	10 called    0/0/0 %
	20 granted   0/0/0 token=1 node=/p/n-0000000001 cached
	21 called    1/0/0 exclusive
	22 queued    1/0/0 node=/p/n-0000000002
	23 called    0/1/0 %
	30 releasing 0/0/0
	31 released  0/0/0 ok
	40 granted   0/1/0 token=1 node=/p/n-0000000001 cached
	50 releasing 0/1/0
	51 released  0/1/0 ok
	52 called    0/0/1 %
	60 granted   0/0/1 token=1 node=/p/n-0000000001 cached
	70 releasing 0/0/1
	71 released  0/0/1 ok
	80 granted   1/0/0 token=2 node=/p/n-0000000002
	90 releasing 1/0/0
	91 released  1/0/0 ok`

func keptBy(mode string) string { return strings.ReplaceAll(kept, "%", mode) }

func TestCheckPasses(t *testing.T) {
	limits := func(passes int, notice time.Duration) simulator.Limits {
		return simulator.Limits{Passes: passes, Notice: notice * time.Millisecond}
	}
	judge(t, []verdict{
		{name: "as many as may be", text: keptBy("exclusive"), limits: limits(2, 5)},
		{
			name: "one too many", text: keptBy("exclusive"), limits: limits(1, 5),
			want: []string{"passes"},
		},
		{name: "before it was known", text: keptBy("exclusive"), limits: limits(1, 30)},
		{
			name: "before the place knew who is behind it",
			text: strings.NewReplacer(
				"	21 called", "	11 called", "	22 queued", "	12 queued",
			).Replace(keptBy("exclusive")),
			limits: limits(0, 41),
		},
		{name: "not checked", text: keptBy("exclusive"), limits: limits(1, 0)},
		{
			name:   "there were faults",
			text:   strings.Replace(keptBy("exclusive"), " 1 calm", "30 calm", 1),
			limits: limits(1, 5),
		},
		{
			name: "a reader before a writer", text: keptBy("shared"),
			limits: limits(9, 5), want: []string{"passes"},
		},
		{
			name: "who stands behind",
			text: strings.ReplaceAll(
				keptBy("exclusive"), "n-0000000002", "n-0000000000",
			),
			limits: limits(1, 5),
		},
	})
}

// Owners who have one znode have one token, and their releases ask nothing.
func TestChecksOfAKeptPlace(t *testing.T) {
	judge(t, []verdict{
		{name: "one token", text: keptBy("exclusive")},
		{
			name: "of several processes",
			text: strings.ReplaceAll(keptBy("exclusive"), "token=2", "token=1"),
			want: []string{"linearizability", "tokens"},
		},
		{
			name: "by znodes of their own",
			text: strings.ReplaceAll(keptBy("exclusive"), " cached", ""),
			want: []string{"linearizability", "tokens"},
		},
		{name: "a use after the znode was deleted by force", text: `
			10 called    0/0/0 exclusive
			11 granted   0/0/0 token=1 node=/p/n-0000000001 session=7 cached
			12 releasing 0/0/0
			12 released  0/0/0 ok
			13 removing  node=/p/n-0000000001
			14 removed   node=/p/n-0000000001
			20 called    1/0/0 exclusive
			21 granted   1/0/0 token=2
			30 called    0/0/1 exclusive
			30 granted   0/0/1 token=1 node=/p/n-0000000001 session=7 cached
			31 releasing 0/0/1
			31 released  0/0/1 ok
			40 releasing 1/0/0
			41 released  1/0/0 ok`},
		{name: "a release after the session was ended by force", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 node=/p/n-0000000001 session=7 cached
			21 called    1/0/0 exclusive
			25 expired   session=7
			30 granted   1/0/0 token=2
			31 releasing 0/0/0
			31 released  0/0/0 ok
			40 releasing 1/0/0
			41 released  1/0/0 ok`},
	})
}
