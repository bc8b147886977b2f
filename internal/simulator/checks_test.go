package simulator_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/simulator"
)

// violations returns which checks found something.
func violations(tb testing.TB, err error) (checks []string) {
	tb.Helper()
	if err == nil {
		return nil
	}
	var v *simulator.Violation
	// Whether it is the Violation itself, and not wrapped, is the question.
	if errors.As(err, &v); v == err { //nolint:errorlint // see above
		return []string{v.Check}
	}
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(tb, ok, "%v", err)
	for _, e := range joined.Unwrap() {
		checks = append(checks, violations(tb, e)...)
	}
	slices.Sort(checks)
	return checks
}

// A verdict is what the checks are to find in a history, nothing where want is empty.
type verdict struct {
	name   string
	text   string
	limits simulator.Limits
	want   []string
}

func judge(t *testing.T, verdicts []verdict) {
	t.Helper()
	for _, v := range verdicts {
		t.Run(v.name, func(t *testing.T) {
			err := parseHistory(t, v.text).Check(v.limits)
			require.Equal(t, v.want, violations(t, err), "%v", err)
		})
	}
}

func TestCheckExclusion(t *testing.T) {
	judge(t, []verdict{
		{name: "one after the other", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    1/0/0 exclusive
			40 releasing 0/0/0
			41 granted   1/0/0 token=2
			42 released  0/0/0 ok
			50 releasing 1/0/0
			51 released  1/0/0 ok`},
		{name: "two at a time", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			50 releasing 0/0/0
			51 released  0/0/0 ok
			52 releasing 1/0/0
			53 released  1/0/0 ok`, want: []string{"exclusion", "linearizability", "releases"}},
		{name: "two owners of one process", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    0/1/0 exclusive
			40 granted   0/1/0 token=2
			50 releasing 0/0/0
			51 released  0/0/0 lock-lost`, want: []string{"exclusion"}},
		{name: "different paths", text: `
			10 called    0/0/0 exclusive
			10 called    1/0/0 exclusive /q
			20 granted   0/0/0 token=1
			20 granted   1/0/0 token=1 /q`},
		{name: "told in time", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    1/0/0 exclusive
			39 lost      0/0/0
			40 granted   1/0/0 token=2
			50 releasing 0/0/0
			51 released  0/0/0 lock-lost`},
		{name: "told at the last moment", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			40 lost      0/0/0`},
		{name: "told too late", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			41 lost      0/0/0`, want: []string{"exclusion"}},
		{name: "released in the shadow of a late notice", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    1/0/0 exclusive
			40 releasing 0/0/0
			41 granted   1/0/0 token=2
			45 lost      0/0/0
			46 released  0/0/0 lock-lost`},
	})
}

func TestCheckExclusionKnowsTolerance(t *testing.T) {
	late := `
		10 called    0/0/0 exclusive
		20 granted   0/0/0 token=1
		30 called    %/0 exclusive
		40 granted   %/0 token=2
		45 lost      0/0/0`
	judge(t, []verdict{
		{
			name: "of another process", text: strings.ReplaceAll(late, "%", "1/0"),
			limits: simulator.Limits{Slack: 5 * time.Millisecond},
		},
		{
			name:   "of another process, too much",
			text:   strings.ReplaceAll(late, "%", "1/0"),
			limits: simulator.Limits{Slack: 4 * time.Millisecond},
			want:   []string{"exclusion"},
		},
		{
			name: "never of the same process", text: strings.ReplaceAll(late, "%", "0/1"),
			limits: simulator.Limits{Slack: time.Second}, want: []string{"exclusion"},
		},
	})
}

func TestCheckExclusionKnowsPausesAndForcedEnds(t *testing.T) {
	judge(t, []verdict{
		{name: "a process that is stopped", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			25 paused    0
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			50 releasing 1/0/0
			51 released  1/0/0 ok
			60 resumed   0
			61 lost      0/0/0`},
		{name: "a process that goes on and is not told", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			25 paused    0
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			60 resumed   0
			71 lost      0/0/0`, limits: simulator.Limits{Grace: 10 * time.Millisecond}, want: []string{"exclusion"}},
		{name: "a process that goes on and is told soon", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			25 paused    0
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			60 resumed   0
			70 lost      0/0/0`, limits: simulator.Limits{Grace: 10 * time.Millisecond}},
		{name: "an overlap before the pause", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			45 paused    0
			60 resumed   0
			61 lost      0/0/0`, want: []string{"exclusion"}},
		{name: "the other process is stopped", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			25 paused    2
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			60 resumed   2
			61 lost      0/0/0`, want: []string{"exclusion"}},
		{name: "a session that was ended", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 session=7
			25 expired   session=7
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 session=8
			41 lost      0/0/0`},
		{name: "a session that was ended, and nobody told", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 session=7
			25 expired   session=7
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 session=8
			46 lost      0/0/0`, limits: simulator.Limits{Told: 20 * time.Millisecond}, want: []string{"exclusion"}},
		{name: "a session that was ended, and told in time", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 session=7
			25 expired   session=7
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 session=8
			45 lost      0/0/0`, limits: simulator.Limits{Told: 20 * time.Millisecond}},
		{name: "a session that was ended at the second attempt", text: `
			10 called    0/0/0 exclusive
			15 expired   session=7
			20 granted   0/0/0 token=1 session=7
			35 expired   session=7
			36 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 session=8
			45 lost      0/0/0`, limits: simulator.Limits{Told: 10 * time.Millisecond}},
		{name: "a znode that was deleted at the second attempt", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 node=/p/a
			21 removing  node=/p/a
			35 removing  node=/p/a
			36 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 node=/p/b
			45 lost      0/0/0
			46 removed   node=/p/a`, limits: simulator.Limits{Told: 10 * time.Millisecond}},
		{name: "a znode whose deletion took long, and told in time", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 node=/p/a
			21 removing  node=/p/a
			35 removed   node=/p/a
			36 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 node=/p/b
			45 lost      0/0/0`, limits: simulator.Limits{Told: 10 * time.Millisecond}},
		{name: "a znode whose deletion took long, and told too late", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 node=/p/a
			21 removing  node=/p/a
			35 removed   node=/p/a
			36 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 node=/p/b
			46 lost      0/0/0`, limits: simulator.Limits{Told: 10 * time.Millisecond}, want: []string{"exclusion"}},
		{name: "a znode that was deleted", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 node=/p/a
			25 removing  node=/p/a
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 node=/p/b
			41 removed   node=/p/a
			42 lost      0/0/0`},
		{name: "another's znode was deleted", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 node=/p/a
			25 removing  node=/p/c
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 node=/p/b
			42 lost      0/0/0`, want: []string{"exclusion"}},
		{name: "another session was ended", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 session=7
			25 expired   session=8
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2 session=9
			41 lost      0/0/0`, want: []string{"exclusion"}},
	})
}

func TestCheckExclusionOfReadersAndLeases(t *testing.T) {
	two := simulator.Limits{Leases: map[string]int{"/p": 2}}
	judge(t, []verdict{
		{name: "readers together", text: `
			10 called    0/0/0 shared
			20 granted   0/0/0 token=2
			30 called    1/0/0 shared
			40 granted   1/0/0 token=1`},
		{name: "a reader beside a writer", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 called    1/0/0 shared
			40 granted   1/0/0 token=2
			45 lost      0/0/0`, want: []string{"exclusion"}},
		{name: "a writer beside a reader", text: `
			10 called    0/0/0 shared
			20 granted   0/0/0 token=1
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			45 lost      0/0/0`, want: []string{"exclusion"}},
		{name: "a downgrade", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=3
			21 called    0/0/0/100 shared under
			22 granted   0/0/0/100 token=3
			23 called    1/0/0 shared
			30 releasing 0/0/0
			31 released  0/0/0 ok
			32 granted   1/0/0 token=4
			40 releasing 0/0/0/100
			41 released  0/0/0/100 ok`},
		{name: "a writer beside a downgraded reader", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=3
			21 called    0/0/0/100 shared under
			22 granted   0/0/0/100 token=3
			23 called    1/0/0 exclusive
			30 releasing 0/0/0
			31 released  0/0/0 ok
			32 granted   1/0/0 token=4
			40 lost      0/0/0/100`, want: []string{"exclusion"}},
		{name: "as many leases as there are", text: `
			10 called    0/0/0/0 leased
			10 called    0/0/0/1 leased
			20 granted   0/0/0/0 token=3
			20 granted   0/0/0/1 token=3
			30 called    1/0/0 leased
			40 releasing 0/0/0/0
			41 granted   1/0/0 token=4
			42 released  0/0/0/0 ok`, limits: two},
		{name: "more leases than there are", text: `
			10 called    0/0/0/0 leased
			10 called    0/0/0/1 leased
			20 granted   0/0/0/0 token=3
			20 granted   0/0/0/1 token=3
			30 called    1/0/0 leased
			41 granted   1/0/0 token=4
			42 lost      0/0/0/0`, limits: two, want: []string{"exclusion"}},
	})
}

func TestCheckTokens(t *testing.T) {
	judge(t, []verdict{
		{name: "a later holder with a lower token", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			25 lost      0/0/0
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=4`, want: []string{"linearizability", "tokens"}},
		{name: "a later holder with a lower token, who has waited", text: `
			10 called    0/0/0 exclusive
			11 called    1/0/0 exclusive
			20 granted   0/0/0 token=5
			25 lost      0/0/0
			40 granted   1/0/0 token=4`, want: []string{"linearizability", "tokens"}},
		{name: "a later holder with a lower token, in a process that was stopped before", text: `
			 3 paused    1
			 5 resumed   1
			10 called    0/0/0 exclusive
			11 called    1/0/0 exclusive
			20 granted   0/0/0 token=5
			25 lost      0/0/0
			40 granted   1/0/0 token=4`, want: []string{"linearizability", "tokens"}},
		{name: "a later holder with the same token", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			25 lost      0/0/0
			30 called    0/0/1 exclusive
			40 granted   0/0/1 token=5`, want: []string{"linearizability", "tokens"}},
		{name: "a token that nobody read", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0
			20 lost      0/0/0
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=4`},
		{name: "a reader's token below a writer's", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			25 lost      0/0/0
			30 called    1/0/0 shared
			40 granted   1/0/0 token=4`, want: []string{"linearizability", "tokens"}},
		{name: "a writer's token below a reader's", text: `
			10 called    0/0/0 shared
			20 granted   0/0/0 token=5
			25 lost      0/0/0
			30 called    1/0/0 exclusive
			40 granted   1/0/0 token=4`, want: []string{"linearizability", "tokens"}},
		{name: "a downgrade with a token of its own", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=3
			21 called    0/0/0/100 shared under
			22 granted   0/0/0/100 token=4`, want: []string{"tokens"}},
		{name: "a downgrade that came too late for the write lock", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=3
			21 called    0/0/0/100 shared under
			22 lost      0/0/0
			24 granted   0/0/0/100 token=6`},
		{name: "leases with one token", text: `
			10 called    0/0/0/0 leased
			10 called    0/0/0/1 leased
			20 granted   0/0/0/0 token=3
			20 granted   0/0/0/1 token=3`, limits: simulator.Limits{Leases: map[string]int{"/p": 2}}},
		{
			name: "others' leases with one token", text: `
			10 called    0/0/0 leased
			20 granted   0/0/0 token=3
			21 called    0/1/0 leased
			22 granted   0/1/0 token=3`,
			limits: simulator.Limits{Leases: map[string]int{"/p": 2}},
			want:   []string{"linearizability", "tokens"},
		},
		{name: "granted before the process was stopped", text: `
			10 called    0/0/0 exclusive
			15 paused    0
			20 called    1/0/0 exclusive
			30 granted   1/0/0 token=4
			35 releasing 1/0/0
			36 released  1/0/0 ok
			40 resumed   0
			41 granted   0/0/0 token=3
			42 lost      0/0/0`, limits: simulator.Limits{Grace: 5 * time.Millisecond}},
		{name: "granted before the session was ended", text: `
			10 called    0/0/0 exclusive
			15 expired   session=7
			20 called    1/0/0 exclusive
			30 granted   1/0/0 token=4
			35 releasing 1/0/0
			36 released  1/0/0 ok
			41 granted   0/0/0 token=3 session=7
			42 lost      0/0/0`},
	})
}

func TestCheckFence(t *testing.T) {
	judge(t, []verdict{
		{name: "a stale write is refused", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			25 writing   0/0/0
			26 written   0/0/0 version=1
			27 writing   0/0/0
			30 lost      0/0/0
			31 called    1/0/0 exclusive
			40 granted   1/0/0 token=6
			41 writing   1/0/0
			42 written   1/0/0 version=2
			50 refused   0/0/0`},
		{name: "a stale write is accepted", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			27 writing   0/0/0
			30 lost      0/0/0
			31 called    1/0/0 exclusive
			40 granted   1/0/0 token=6
			41 writing   1/0/0
			42 written   1/0/0 version=1
			50 written   0/0/0 version=2`, want: []string{"fence"}},
		{name: "a stale write comes before the later holder's", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			27 writing   0/0/0
			30 lost      0/0/0
			31 called    1/0/0 exclusive
			40 granted   1/0/0 token=6
			41 writing   1/0/0
			50 written   0/0/0 version=1
			51 written   1/0/0 version=2`},
		{name: "a holder is refused", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			27 writing   0/0/0
			30 refused   0/0/0`, want: []string{"fence"}},
		{name: "a holder is refused while its loss is told", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			27 writing   0/0/0
			30 lost      0/0/0
			30 refused   0/0/0`},
		{name: "a holder in a process that was stopped is refused", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5
			27 writing   0/0/0
			28 paused    0
			29 resumed   0
			30 refused   0/0/0`},
		{name: "a reader is refused", text: `
			10 called    0/0/0 shared
			20 granted   0/0/0 token=5
			27 writing   0/0/0
			30 refused   0/0/0`, want: []string{"fence"}},
	})
}

func TestCheckReleases(t *testing.T) {
	overtaken := `
		10 called    0/0/0 exclusive
		20 granted   0/0/0 token=5 session=7
		25 paused    0
		26 called    1/0/0 exclusive
		30 granted   1/0/0 token=6
		31 releasing 1/0/0
		32 released  1/0/0 ok
		40 resumed   0
		41 releasing 0/0/0
		42 released  0/0/0 %`
	judge(t, []verdict{
		{
			name: "a loss that was not told",
			text: strings.ReplaceAll(overtaken, "%", "ok"),
			want: []string{"linearizability", "releases"},
		},
		{
			name: "a loss that the release told",
			text: strings.ReplaceAll(overtaken, "%", "lock-lost"),
		},
		{name: "a znode that somebody else deleted", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=5 node=/p/a
			25 removing  node=/p/a
			26 called    1/0/0 exclusive
			30 granted   1/0/0 token=6
			31 releasing 1/0/0
			32 released  1/0/0 ok
			41 releasing 0/0/0
			42 released  0/0/0 ok`},
		{
			name: "a loss to a reader that was not told", text: strings.ReplaceAll(
				strings.ReplaceAll(overtaken, "%", "ok"), "1/0/0 exclusive",
				"1/0/0 shared",
			),
			want: []string{"linearizability", "releases"},
		},
		{name: "two readers", text: strings.ReplaceAll(
			strings.ReplaceAll(overtaken, "%", "ok"), "exclusive", "shared",
		)},
		{
			name: "a release that is not confirmed",
			text: strings.ReplaceAll(overtaken, "%", "cancelled"),
		},
	})
}

func TestCheckRemovals(t *testing.T) {
	deleted := `
		10 called    0/0/0 exclusive
		20 granted   0/0/0 token=5 node=/p/a
		21 called    1/0/0 %
		22 removing  node=/p/b
		24 removed   node=/p/b
		30 releasing 0/0/0
		31 granted   1/0/0 token=6 node=/p/b
		32 released  0/0/0 ok
		33 lost      1/0/0`
	later := `
		10 called    0/0/0 exclusive
		20 granted   0/0/0 token=5 node=/p/a
		21 called    1/0/0 exclusive
		21 called    % exclusive
		22 removing  node=/p/c
		24 removed   node=/p/c
		30 releasing 0/0/0
		31 granted   1/0/0 token=6 node=/p/b
		32 released  0/0/0 ok
		33 releasing 1/0/0
		33 granted   % token=7 node=/p/c
		34 released  1/0/0 ok
		35 lost      %`
	judge(t, []verdict{
		{
			name: "a writer", text: strings.ReplaceAll(deleted, "%", "exclusive"),
			want: []string{"removals"},
		},
		{
			name: "a reader", text: strings.ReplaceAll(deleted, "%", "shared"),
			want: []string{"removals"},
		},
		{name: "told at almost the same time", text: strings.ReplaceAll(
			strings.ReplaceAll(deleted, "%", "exclusive"), "33 lost", "32 lost",
		)},
		{name: "handed on within a process, and told in time", text: strings.ReplaceAll(
			strings.ReplaceAll(deleted, "%", "exclusive"), "1/0/0", "0/1/0",
		), limits: simulator.Limits{Told: 11 * time.Millisecond}},
		{name: "handed on within a process, and told late", text: strings.ReplaceAll(
			strings.ReplaceAll(deleted, "%", "exclusive"), "1/0/0", "0/1/0",
		), limits: simulator.Limits{Told: 10 * time.Millisecond}, want: []string{"removals"}},
		{
			name:   "handed on by one who had it since",
			text:   strings.ReplaceAll(later, "%", "1/1/0"),
			limits: simulator.Limits{Told: 13 * time.Millisecond},
		},
		{
			name: "not handed on", text: strings.ReplaceAll(later, "%", "2/0/0"),
			limits: simulator.Limits{Told: 13 * time.Millisecond}, want: []string{"removals"},
		},
		{name: "readers together", text: strings.ReplaceAll(
			strings.ReplaceAll(deleted, "%", "shared"), "exclusive", "shared",
		)},
		{name: "a new znode", text: strings.ReplaceAll(
			strings.ReplaceAll(deleted, "%", "shared"), "token=6 node=/p/b",
			"token=6 node=/p/c",
		)},
		{name: "deleted at the same time", text: strings.ReplaceAll(
			strings.ReplaceAll(deleted, "%", "shared"), "24 removed", "30 removed",
		)},
		{name: "deleted before the other came", text: strings.ReplaceAll(
			strings.ReplaceAll(deleted, "%", "shared"), "22 removing", "20 removing",
		)},
		{name: "the other had lost it", text: strings.ReplaceAll(
			strings.ReplaceAll(deleted, "%", "exclusive"), "0/0/0 ok", "0/0/0 lock-lost",
		)},
	})
}

func TestCheckOutcomesAndPromptness(t *testing.T) {
	judge(t, []verdict{
		{name: "nothing special", text: `
			10 called    0/0/0 exclusive bound=20
			30 failed    0/0/0 timed-out
			30 called    0/0/1 exclusive
			90 failed    0/0/1 cancelled`},
		{name: "an error that is not in the contract", text: `
			10 called    0/0/0 exclusive
			30 failed    0/0/0 unexpected`, want: []string{"outcomes"}},
		{name: "a call that lasts too long", text: `
			10 called    0/0/0 exclusive bound=20
			35 failed    0/0/0 timed-out`, limits: simulator.Limits{Prompt: 4 * time.Millisecond}, want: []string{"promptness"}},
		{name: "not checked", text: `
			10 called    0/0/0 exclusive bound=20
			35 failed    0/0/0 timed-out`, limits: simulator.Limits{Prompt: -1}},
		{name: "a release that lasts too long", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 releasing 0/0/0 bound=20
			51 released  0/0/0 ok`, want: []string{"promptness"}},
		{name: "a process that was stopped before, and another", text: `
			 3 paused    0
			 5 resumed   0
			10 called    0/0/0 exclusive bound=20
			20 paused    1
			80 resumed   1
			85 failed    0/0/0 timed-out`, want: []string{"promptness"}},
		{name: "a process that was stopped", text: `
			10 called    0/0/0 exclusive bound=20
			20 paused    0
			80 resumed   0
			85 failed    0/0/0 timed-out`},
	})
}

// What only the search for an order can find: each of the other checks compares two
// holders that are sure of themselves.
func TestCheckLinearizable(t *testing.T) {
	judge(t, []verdict{
		{name: "a lock taken out of a pause, after it was lost", text: `
			10 called    0/0/0 exclusive
			15 paused    0
			16 called    1/0/0 exclusive
			17 granted   1/0/0 token=5
			20 granted   0/0/0 token=6
			25 releasing 0/0/0
			26 released  0/0/0 ok
			30 resumed   0
			31 releasing 1/0/0
			32 released  1/0/0 lock-lost`},
		{name: "two that were both stopped, and both sure", text: `
			10 called    0/0/0 exclusive
			11 called    1/0/0 exclusive
			15 paused    0
			15 paused    1
			17 granted   1/0/0 token=5
			20 granted   0/0/0 token=6
			25 releasing 0/0/0
			26 released  0/0/0 ok
			31 releasing 1/0/0
			32 released  1/0/0 ok`, want: []string{"linearizability"}},
		{name: "more leases than there are, one in a process that was stopped", text: `
			10 called    0/0/0 leased
			11 granted   0/0/0 token=1
			15 paused    0
			20 called    1/0/0 leased
			21 granted   1/0/0 token=2
			22 releasing 1/0/0
			23 released  1/0/0 ok
			30 resumed   0
			31 releasing 0/0/0
			32 released  0/0/0 ok`, limits: simulator.Limits{Leases: map[string]int{"/p": 1}}, want: []string{"linearizability"}},
		{name: "not confirmed, and taken by another", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			30 releasing 0/0/0
			31 released  0/0/0 cancelled
			40 called    1/0/0 exclusive
			50 granted   1/0/0 token=2`},
		{name: "taken by another before the release began", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 session=1
			25 called    1/0/0 exclusive
			28 granted   1/0/0 token=2
			28 releasing 0/0/0
			31 released  0/0/0 cancelled`, want: []string{"linearizability"}},
	})
}

func TestCheckRefusesWhatIsNoHistory(t *testing.T) {
	for _, text := range []string{
		`10 granted 0/0/0 token=1`,
		`10 written 0/0/0 token=1`,
		"10 called 0/0/0 exclusive\n11 called 0/0/0 exclusive",
	} {
		err := parseHistory(t, text).Check(simulator.Limits{})
		require.ErrorContains(t, err, "not a history")
	}
}

// A worker who is cut off must have told of a loss before the servers can end its
// session.
func TestCheckLosses(t *testing.T) {
	session := simulator.Limits{Session: time.Second, Slack: 10 * time.Millisecond}
	judge(t, []verdict{
		{name: "in time", limits: session, text: `
			10   called    0/0/0 exclusive
			20   granted   0/0/0 token=1
			30   cut       0
			990  lost      0/0/0
			2000 mended    0`},
		{name: "released before", limits: session, text: `
			10   called    0/0/0 exclusive
			20   granted   0/0/0 token=1
			30   cut       0
			500  releasing 0/0/0
			2000 mended    0`},
		{name: "too late", limits: session, text: `
			10   called    0/0/0 exclusive
			20   granted   0/0/0 token=1
			30   cut       0
			991  lost      0/0/0
			2000 mended    0`, want: []string{"losses"}},
		{name: "never", limits: session, text: `
			10   called    0/0/0 exclusive
			20   granted   0/0/0 token=1
			30   cut       0`, want: []string{"losses"}},
		{name: "handed over meanwhile, and too late", limits: session, text: `
			10   called    0/0/0 exclusive
			20   granted   0/0/0 token=1
			21   called    0/1/0 exclusive
			30   cut       0
			500  releasing 0/0/0
			501  granted   0/1/0 token=2`, want: []string{"losses"}},
		{name: "another worker", limits: session, text: `
			10   called    0/0/0 exclusive
			20   granted   0/0/0 token=1
			30   cut       1`},
		{name: "it has a line again before", limits: session, text: `
			10   called    0/0/0 exclusive
			20   granted   0/0/0 token=1
			30   cut       0
			900  mended    0`},
		{name: "it was stopped meanwhile", limits: session, text: `
			10   called    0/0/0 exclusive
			20   granted   0/0/0 token=1
			30   cut       0
			40   paused    0
			1200 resumed   0`},
	})
}
