package prove

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/simulator"
)

const ms = time.Millisecond

// acquired are the events of a worker who holds a path from a time to another.
func acquired(
	worker int, path string, token int64, from, to time.Duration,
) simulator.History {
	e := simulator.Event{
		ID: simulator.ID{Worker: worker}, Path: path, Mode: simulator.Exclusive,
		Token: token,
	}
	var h simulator.History
	for _, step := range []struct {
		kind simulator.Kind
		at   time.Duration
	}{
		{simulator.Called, from - ms},
		{simulator.Queued, from - ms},
		{simulator.Granted, from},
		{simulator.Releasing, to},
		{simulator.Released, to + ms},
	} {
		one := e
		one.Kind, one.At = step.kind, step.at
		if one.Kind == simulator.Released {
			one.Outcome = simulator.OK
		}
		h = append(h, one)
	}
	return h
}

// The steps of one worker count on, so that no two acquisitions have one ID.
func numbered(h ...simulator.History) simulator.History {
	for n, one := range h {
		for i := range one {
			one[i].Step = n
		}
	}
	return simulator.Merge(h...)
}

func roundOf(late time.Duration) roundHead {
	return roundHead{Root: "/r/0", Session: 10 * time.Second, Late: late}
}

func reportOn(head roundHead, h simulator.History) *Report {
	r := newReport(Config{Root: "/r"}, head.Session, Span{time.Second, time.Minute})
	c := counts{}
	for _, e := range h {
		c.add(e)
	}
	r.take(head, c, nil, h)
	r.sumUp()
	return r
}

// What shows a violation is as short as it can be: two of forty acquisitions.
func TestTheExcerptIsShort(t *testing.T) {
	t.Parallel()
	var all []simulator.History
	for n := range 40 {
		at := time.Duration(n+1) * time.Second
		all = append(all, acquired(n%3, "/r/0/mutex-1", int64(n+1), at, at+900*ms))
		all = append(all, acquired(n%3, "/r/0/mutex-2", int64(n+1), at, at+100*ms))
	}
	all = append(all,
		acquired(7, "/r/0/mutex-1", 100, 20*time.Second+50*ms, 21*time.Second))
	r := reportOn(roundOf(0), numbered(all...))
	require.Equal(t, Violated, r.Verdict)
	require.Equal(t, "exclusion", r.Findings[0].What)
	require.Len(t, r.Findings[0].Excerpt, 10)
	require.Contains(t, strings.Join(r.Findings[0].Excerpt, "\n"), "worker 7")
	require.Less(t, strings.Count(r.Text(), "\n"), 60)
}

// Who reads that holds were lost looks for a fault: what ended as a worker closed its
// client, which is part of its work, is another number.
func TestTheReportTellsLossesFromCloses(t *testing.T) {
	t.Parallel()
	h := acquired(1, "/r/0/mutex-1", 1, ms, 2*ms)
	for _, outcome := range []simulator.Outcome{"", simulator.Closed, simulator.Closed} {
		h = append(h, simulator.Event{Kind: simulator.Lost, Outcome: outcome})
	}
	require.Contains(t, reportOn(roundOf(0), h).Text(),
		"faults: 0, holds lost: 1, holds ended by closing clients: 2\n")
}

// Each row of the page's table of checks finds what breaks it, and finds nothing in the
// same history without that.
func TestEachCheckOfThePage(t *testing.T) {
	t.Parallel()
	const p, s = "/r/0/mutex-1", time.Second
	event := func(kind simulator.Kind, worker int, at time.Duration) simulator.Event {
		return simulator.Event{
			Kind: kind, At: at, ID: simulator.ID{Worker: worker}, Path: p, Guarded: true,
			Version: 1,
		}
	}
	for _, test := range []struct {
		check       string
		fine, wrong []simulator.History
	}{
		{
			"exclusion",
			[]simulator.History{acquired(0, p, 1, s, 2*s), acquired(1, p, 2, 3*s, 4*s)},
			[]simulator.History{acquired(0, p, 1, s, 4*s), acquired(1, p, 2, 3*s, 5*s)},
		},
		{
			"tokens", // who came first had the lock last
			[]simulator.History{acquired(0, p, 1, s, 2*s), acquired(1, p, 2, 3*s, 4*s)},
			[]simulator.History{acquired(0, p, 2, s, 2*s), acquired(1, p, 1, 3*s, 4*s)},
		},
		{
			"fence", // the write of one who had the lock before
			[]simulator.History{
				acquired(0, p, 1, s, 2*s), acquired(1, p, 2, 3*s, 4*s), {
					event(simulator.Writing, 0, 1500*ms),
					event(simulator.Written, 0, 1600*ms),
				},
			},
			[]simulator.History{
				acquired(0, p, 1, s, 2*s), acquired(1, p, 2, 3*s, 4*s), {
					event(simulator.Writing, 0, 3500*ms),
					event(simulator.Written, 0, 3600*ms),
				},
			},
		},
		{
			"losses",
			[]simulator.History{
				acquired(0, p, 1, s, 30*s), {
					event(simulator.Cut, 0, 2*s), event(simulator.Lost, 0, 11*s),
				},
			},
			[]simulator.History{
				acquired(0, p, 1, s, 30*s), {event(simulator.Cut, 0, 2*s)},
			},
		},
		{
			"linearizability", // together for less than what a judge may be late
			[]simulator.History{
				acquired(0, p, 1, s, 2*s), acquired(1, p, 2, 2010*ms, 3*s),
			},
			[]simulator.History{
				acquired(0, p, 1, s, 2*s), acquired(1, p, 2, 1900*ms, 3*s),
			},
		},
	} {
		r := reportOn(roundOf(0), simulator.Merge(test.fine...))
		require.Equal(t, Proven, r.Verdict, "%s: %v", test.check, r.Findings)
		r = reportOn(roundOf(0), simulator.Merge(test.wrong...))
		require.Equal(t, Violated, r.Verdict, test.check)
		require.True(t, slices.ContainsFunc(r.Findings, func(f Finding) bool {
			return f.What == test.check
		}), "%s: %v", test.check, r.Findings)
	}
	left := newReport(Config{}, s, Span{})
	left.take(roundOf(0), counts{}, &stuckError{1, "it does not get mutex-1"}, nil)
	left.sumUp()
	require.Equal(t, Violated, left.Verdict)
	require.Equal(t, endOfRound, left.Findings[0].What)
}

// A judge that was suspended decides nothing, and says so.
func TestASuspendedJudge(t *testing.T) {
	t.Parallel()
	h := acquired(0, "/r/0/mutex-1", 1, time.Second, 2*time.Second)
	require.Equal(t, Proven, reportOn(roundOf(time.Second), h).Verdict)
	late := reportOn(roundOf(time.Second+ms), h)
	require.Equal(t, Undecided, late.Verdict)
	require.Contains(t, late.Text(), "the judge did not run for 1.001s")
	require.Equal(t, Undecided, reportOn(roundOf(0), nil).Verdict, "nothing has happened")
}

// Only who waited for a release counts, and from the begin of that.
func TestHandOvers(t *testing.T) {
	t.Parallel()
	first := acquired(0, "/p", 1, 10*ms, 50*ms)
	waiter := acquired(1, "/p", 2, 57*ms, 90*ms)
	waiter[0].At, waiter[1].At = 20*ms, 21*ms
	later := acquired(2, "/p", 3, 200*ms, 210*ms) // nobody was there to hand over
	other := acquired(3, "/q", 4, 70*ms, 71*ms)
	h := numbered(first, waiter, later, other)
	require.Equal(t, []time.Duration{7 * ms}, handOvers(h))
	require.Equal(t, Times{1, 7 * ms, 7 * ms, 7 * ms}, timesOf(handOvers(h)))
}

// What follows goes by the numbers of the page.
func TestTheAdviceIsThatOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/guarantees.md")
	require.NoError(t, err)
	for row, share := range map[string]float64{
		`held for T/2 or more`: survives, `idle for long`: survivesFresh,
		`every answer takes up to`: slowest,
	} {
		found := regexp.MustCompile(row + `[^|\n]*\| ([0-9.]+) \|`).FindSubmatch(page)
		require.NotNil(t, found, row)
		require.Equal(t, fmt.Sprint(share), string(found[1]))
	}
	for _, line := range []string{
		"at least twice, better three times, the longest outage",
		"Ten seconds is a good start", "Below four server ticks",
	} {
		require.Contains(t, strings.Join(strings.Fields(string(page)), " "), line)
	}
}

func TestTheSessionTimeoutToChoose(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		e    Ensemble
		want time.Duration
	}{
		{Ensemble{Tick: 2 * time.Second, Silence: time.Second}, 10 * time.Second},
		{Ensemble{Tick: 2 * time.Second, Silence: 5100 * ms}, 16 * time.Second},
		{Ensemble{Tick: 4 * time.Second}, 16 * time.Second},
	} {
		require.Equal(t, test.want, test.e.choice())
	}
	r := newReport(Config{}, time.Second, Span{time.Second, 12 * time.Second})
	r.Ensemble.Silence = 5 * time.Second
	require.Contains(t, strings.Join(r.advise(), "\n"), "raise maxSessionTimeout")
}

// What is said against a release stands on the page of servers.
func TestWhatIsAgainstARelease(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/servers.md")
	require.NoError(t, err)
	flat := strings.Join(strings.Fields(string(page)), " ")
	for release, said := range map[string]string{
		"3.8.0":        "**Not 3.8.0 in production.** Its servers can diverge",
		"3.9.3-abc123": "3.9.3 alone can lose data",
		"3.4.14":       "3.4 has no containers",
	} {
		require.NotEmpty(t, Against(release), release)
		require.Contains(t, flat, said)
	}
	require.Empty(t, Against("3.9.5"))
	require.Empty(t, Against("3.8.0-zktest"))
	r := newReport(Config{}, time.Second, Span{time.Second, time.Minute})
	r.Ensemble.Releases = []string{"3.8.0", "3.9.5"}
	require.Equal(t, 1, strings.Count(strings.Join(r.advise(), "\n"), "docs/servers.md"))
}

// What a page says was said by anybody.
func TestThePageIsEscaped(t *testing.T) {
	t.Parallel()
	evil := "</pre><script>alert(1)</script>\x1b[31m\u202e"
	h := numbered(acquired(0, "/r/0/"+evil, 1, time.Second, 2*time.Second),
		acquired(1, "/r/0/"+evil, 2, time.Second+ms, 2*time.Second))
	r := reportOn(roundOf(0), h)
	r.undecided(0, evil, evil)
	var page strings.Builder
	require.NoError(t, r.WritePage(&page))
	require.NotContains(t, page.String(), "<script")
	require.NotContains(t, page.String()+r.Text(), "\x1b")
	require.NotContains(t, page.String()+r.Text(), "\u202e")
	require.Contains(t, page.String(), "&lt;script&gt;")
	require.Contains(t, page.String(), "<svg")
}

// lines is a file of a round with these events.
func lines(tb testing.TB, head roundHead, h simulator.History) string {
	tb.Helper()
	all := []record{{Head: &Head{Format: fileFormat, Root: "/r"}}, {Round: &head}}
	for _, e := range h {
		all = append(all, record{Event: &e})
	}
	all = append(all, record{RoundEnd: &head}, record{End: reportOn(head, h)})
	var b strings.Builder
	for _, one := range all {
		text, err := json.Marshal(one)
		require.NoError(tb, err)
		b.Write(text)
		b.WriteString("\n")
	}
	return b.String()
}

func TestFilesThatSomebodySends(t *testing.T) {
	t.Parallel()
	fine := acquired(0, "/r/0/mutex-1", 1, time.Second, 2*time.Second)
	file := lines(t, roundOf(0), fine)
	r, err := Check(strings.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, Proven, r.Verdict)
	for name, text := range map[string]string{
		"empty":           "",
		"no JSON":         "hello\n",
		"another format":  `{"head":{"zklockProve":2}}` + "\n",
		"no head":         file[strings.Index(file, "\n")+1:],
		"a long line":     strings.Repeat("x", reportMost),
		"back in time":    strings.Replace(file, `"at":2000000000`, `"at":1`, 1),
		"before it began": strings.Replace(file, `"at":999000000`, `"at":-1`, 1),
		"two heads":       file + file,
		"two ends":        file + file[strings.LastIndex(file, `{"end"`):],
		"a long event": strings.Replace(file, `"path":"`,
			`"path":"`+strings.Repeat("x", lineMost), 1),
		"an odd session":    strings.ReplaceAll(file, `on":10000000000`, `on":0`),
		"a long judge":      strings.ReplaceAll(file, `ate":0`, `ate":90000000000000`),
		"an unknown record": file + "{}\n",
	} {
		_, err := Check(strings.NewReader(text))
		require.Error(t, err, name)
	}
	many := make(simulator.History, eventsMost+1)
	for i := range many {
		many[i] = simulator.Event{Kind: simulator.Note}
	}
	_, err = Check(strings.NewReader(lines(t, roundOf(0), many)))
	require.ErrorIs(t, err, errNoFile)
	crowd := make(simulator.History, together+1)
	for i := range crowd {
		crowd[i] = simulator.Event{
			Kind: simulator.Called, Path: "/r/0/p", ID: simulator.ID{Step: i},
		}
	}
	r, err = Check(strings.NewReader(lines(t, roundOf(0), crowd)))
	require.NoError(t, err)
	require.Equal(t, Undecided, r.Verdict)
}

// A file that takes too long, or too much memory, decides nothing.
func TestACheckIsBounded(t *testing.T) {
	t.Parallel()
	for _, w := range []checkWithin{
		{memory: 1 << 30, time: time.Millisecond}, {memory: 1, time: time.Hour},
	} {
		endless, _ := io.Pipe()
		r, err := w.check(endless)
		require.NoError(t, err)
		require.Equal(t, Undecided, r.Verdict)
		require.Contains(t, r.Text(), "it takes more than "+w.time.String())
		require.NoError(t, endless.Close())
	}
}

// No file ends the check other than by an error or a verdict.
func FuzzCheck(f *testing.F) {
	f.Add(lines(f, roundOf(0),
		acquired(0, "/r/0/mutex-1", 1, time.Second, 2*time.Second)))
	f.Add(lines(f, roundOf(time.Second), numbered(
		acquired(0, "/r/0/semaphore", 1, time.Second, 2*time.Second),
		acquired(1, "/r/0/semaphore", 2, time.Second+ms, 2*time.Second))))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Check(strings.NewReader(text))
		if err == nil {
			require.NotEmpty(t, r.Verdict)
			require.LessOrEqual(t, strings.Count(r.Text(), "\n"), 80)
		}
	})
}

// The page of what a run does to an ensemble has the numbers that are the code's.
func TestThePageHasTheNumbers(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/prove.md")
	require.NoError(t, err)
	command, err := os.ReadFile("../../prove.go")
	require.NoError(t, err)
	for said, flag := range map[string]string{
		"at most ([0-9]+) in any second .`--rate`": `"rate".*Value: ([0-9]+)`,
		"the ([0-9]+) workers .`--workers`":        `"workers".*Value: ([0-9]+)`,
	} {
		want := regexp.MustCompile(flag).FindSubmatch(command)
		found := regexp.MustCompile(said).FindSubmatch(page)
		require.NotNil(t, want, flag)
		require.NotNil(t, found, said)
		require.Equal(t, string(want[1]), string(found[1]))
		_, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
	}
}
