package prove

import (
	"fmt"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/serve/text"
)

// What docs/guarantees.md promises, in parts of the session timeout, where the servers'
// tick is not known: a test holds the page to it.
const (
	survives      = 0.52 // the outage that a hold survives
	survivesFresh = 0.28 // one that was acquired just now, on an idle connection
	slowest       = 0.26 // what every answer may take
)

const (
	// timesOutage is how many times the longest outage a session timeout should be.
	timesOutage = 3
	// goodStart is the session timeout with which the page has one begin.
	goodStart = 10 * time.Second
	// leastTicks is what an election alone may take.
	leastTicks = 4
)

func part(of time.Duration, share float64) time.Duration {
	return time.Duration(share * float64(of)).Round(time.Millisecond)
}

// choice is the session timeout to choose.
func (e Ensemble) choice() time.Duration {
	least := max(goodStart, timesOutage*e.Silence, leastTicks*e.Tick)
	return (least + time.Second - 1).Truncate(time.Second)
}

// advise says what follows from what was measured.
func (r *Report) advise() (all []string) {
	e := r.Ensemble
	say := func(format string, args ...any) {
		all = append(all, fmt.Sprintf(format, args...))
	}
	t := e.choice()
	say("choose a session timeout of %v: three times the longest outage seen, at least "+
		"four ticks and %v", t, goodStart)
	say("with %v a hold survives an outage of %v (%v just after the acquire), and "+
		"answers that take up to %v", t, part(t, survives), part(t, survivesFresh),
		part(t, slowest))
	if t > e.Sessions.Most {
		say("the servers grant no more than %v: raise maxSessionTimeout", e.Sessions.Most)
	}
	if slow := part(t, slowest) / 2; e.Commit.Worst > slow {
		say("the slowest commit took %v, more than half of what a hold survives: look "+
			"at the servers' disks and network", round3(e.Commit.Worst))
	}
	if off := max(e.Clock.Least.Abs(), e.Clock.Most.Abs()); off > time.Second {
		say("the servers' clocks and this one differ by %v: locks do not need them, but "+
			"logs do", round3(off))
	}
	for _, release := range e.Releases {
		if why := Against(release); why != "" {
			say("a server is ZooKeeper %s: %s (docs/servers.md)", release, why)
		}
	}
	if e.Elections > 0 {
		say("%d elections while the run lasted: each one is an outage", e.Elections)
	}
	return all
}

// Against is what docs/servers.md has against a release, "" if nothing.
func Against(release string) string {
	version, suffix, _ := strings.Cut(release, "-")
	switch {
	case suffix == "zktest":
		return ""
	case version == "3.8.0":
		return "its servers can diverge, or forget what they confirmed"
	case version == "3.9.3":
		return "a server that was behind can lose data"
	case strings.HasPrefix(version, "3.4."):
		return "it has no container znodes, so empty lock paths remain"
	}
	return ""
}

// round3 leaves what one wants to read.
func round3(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{
		time.Second, time.Millisecond, time.Microsecond,
	} {
		if d.Abs() >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

func (t Times) String() string {
	if t.Count == 0 {
		return "not measured"
	}
	return fmt.Sprintf("median %v, 99th %v, worst %v", round3(t.Median), round3(t.High),
		round3(t.Worst))
}

// Text is the report, on a screen. What somebody has sent is shown as text.Printable has
// it.
func (r *Report) Text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-22s%s\n", name, text.Printable(fmt.Sprintf(format, args...)))
	}
	e := r.Ensemble
	fmt.Fprintf(&b, "%s\n", r.headline())
	r.writeFindings(&b)
	line("workload", "rounds: %d, machines: %d, workers: %d, session timeout: %v",
		r.Rounds, r.Hosts, r.Workers, r.Session)
	line("", "acquisitions: %d, fenced writes: %d accepted, %d rejected",
		r.Counts.Acquired, r.Counts.Written, r.Counts.Refused)
	line("", "faults: %d, holds lost: %d, holds ended by closing clients: %d",
		r.Counts.Faults, r.Counts.Lost, r.Counts.Closed)
	line("the judge", "late by %v at worst, seed %d", round3(r.Late), r.Seed)
	for i, why := range r.Skipped {
		if i == findingsShown {
			line("", "and %d more do not count", len(r.Skipped)-i)
			break
		}
		line("", "does not count: %s", brief(why))
	}
	if e.Acquisitions > 0 {
		line("acquisitions", "%.1f a second by this workload, with at most %d requests",
			e.Acquisitions, r.Rate)
	}
	line("hand-over", "%v", e.HandOver)
	line("round trip", "%v", e.RoundTrip)
	line("commit", "%v", e.Commit)
	line("longest outage", "%v; elections: %d", round3(e.Silence), e.Elections)
	if len(e.Releases) > 0 {
		line("servers", "ZooKeeper %s", brief(strings.Join(e.Releases, ", ")))
	}
	line("session timeouts", "%v to %v granted; tick %v, if minSessionTimeout is two",
		e.Sessions.Least, e.Sessions.Most, e.Tick)
	line("clocks", "the servers' are ahead by %v to %v", round3(e.Clock.Least),
		round3(e.Clock.Most))
	for i, advice := range r.Advice {
		name := ""
		if i == 0 {
			name = "what follows"
		}
		line(name, "%s", brief(advice))
	}
	if r.Left != "" {
		line("left behind", "%s: %s", r.Root, brief(r.Left))
	}
	return b.String()
}

func (r *Report) headline() string {
	switch r.Verdict {
	case Proven:
		return fmt.Sprintf("PROVEN: in %v nothing was found against the locks' promises",
			r.Lasted.Round(time.Second))
	case Violated:
		switch r.Findings[0].What {
		case forgetful:
			return "VIOLATED: the servers do not keep what they confirm, so that no " +
				"lock on them can keep its promises"
		case clocks:
			return "VIOLATED: a clock runs too slow or too fast, so that locks cannot " +
				"keep their promises there"
		}
		return "VIOLATED: a promise was not kept"
	}
	return "UNDECIDED: the run cannot tell whether the locks keep their promises"
}

// What the text shows of findings: how many, of each its text to so many letters, and so
// many lines of its excerpt.
const (
	findingsShown = 3
	lettersShown  = 400
	linesShown    = 12
)

// brief is the first line of a text.
func brief(of string) string {
	first, rest, _ := strings.Cut(of, "\n")
	if letters := []rune(first); len(letters) > lettersShown {
		first, rest = string(letters[:lettersShown]), "more"
	}
	if rest != "" {
		first += " …"
	}
	return first
}

// plain is the first line of a text, without what all paths begin with.
func (r *Report) plain(of string) string {
	if r.Root != "" {
		of = strings.ReplaceAll(of, r.Root+"/", "/")
	}
	return text.Printable(brief(of))
}

func (r *Report) writeFindings(b *strings.Builder) {
	for i, f := range r.Findings {
		if i == findingsShown {
			fmt.Fprintf(b, "  and %d more\n", len(r.Findings)-i)
			return
		}
		where := ""
		if f.Round >= 0 {
			where = fmt.Sprintf(" in round %d", f.Round)
		}
		fmt.Fprintf(b, "  %s%s: %s\n", f.Verdict, where, r.plain(f.Text))
		for _, one := range f.Excerpt[max(0, len(f.Excerpt)-linesShown):] {
			fmt.Fprintf(b, "    %s\n", r.plain(one))
		}
	}
}
