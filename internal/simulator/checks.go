package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Limits are what a history is checked against.
type Limits struct {
	Leases map[string]int // the maximum of each semaphore, by its path
	// Slack is how much of an overlap of two holders of different workers does not count:
	// what it takes a process to run the goroutine that notes a loss. In one process, and
	// in virtual time, none is needed.
	Slack time.Duration
	// Grace is what a process needs, once it goes on after a pause, to learn what it has
	// missed.
	Grace time.Duration
	// Told is what a holder may need to learn that its session was ended by force, or its
	// znode deleted by somebody else; 0: any time.
	Told time.Duration
	// In calm: what may pass until a process has seen who stands behind a place that it
	// keeps, and how often it passes that on then; 0: not checked.
	Notice time.Duration
	Passes int
	// Session is the session timeout, by which a worker that is cut off must have told of
	// what it loses; 0: not checked.
	Session time.Duration
	// Prompt is by how much calls may end later than they were to; below 0 that is not
	// checked.
	Prompt time.Duration
	// Linearize bounds the search of each path's linearization in real time; default a
	// minute. Below 0 there is none: where dozens ask at once it has no end, and
	// exclusion, tokens and the fence are checked by themselves.
	Linearize time.Duration
}

// Check makes all checks and returns what they found, joined.
func (h History) Check(l Limits) error {
	an, err := newAnalysis(h, l)
	if err != nil {
		return err
	}
	return errors.Join(an.checkOutcomes(), an.checkPrompt(), an.checkExclusion(),
		an.checkMargins(), an.checkLosses(), an.checkPasses(),
		an.checkTokens(), an.checkFence(), an.checkReleases(), an.checkRemovals(),
		an.checkLinearizable())
}

// A Violation is what a check found, with what led to it.
type Violation struct {
	Check string
	Path  string
	// Undecided: the check has not come to its end.
	Undecided bool
	text      string
	tail      string // the end of the history of the path
}

// Text is what was found, without what led to it.
func (v *Violation) Text() string { return v.Check + ": " + v.text }

func (v *Violation) Error() string { return v.Text() + "\n" + v.tail }

// violation is one of the path of a, seen at a time.
func (an *analysis) violation(
	check, path string, at time.Duration, format string, args ...any,
) *Violation {
	return &Violation{
		Check: check, Path: path, text: path + ": " + fmt.Sprintf(format, args...),
		tail: an.history.Tail(path, at),
	}
}

// checkOutcomes demands that no call has ended in a way that the library does not have.
func (an *analysis) checkOutcomes() error {
	for _, e := range an.history {
		if e.Outcome == Unexpected {
			return an.violation("outcomes", e.Path, e.At, "unexpected: %v", e)
		}
	}
	return nil
}

// checkPrompt demands that calls end when they were to, except in a process that was
// stopped meanwhile.
func (an *analysis) checkPrompt() error {
	if an.limits.Prompt < 0 {
		return nil
	}
	open := map[ID]Event{}
	for _, e := range an.history {
		switch e.Kind {
		case Called, Releasing:
			open[e.ID] = e
		case Granted, Failed, Released:
			began := open[e.ID]
			if began.Bound > 0 && e.At-began.At > began.Bound+an.limits.Prompt &&
				!an.wasPaused(e.Worker, began.At, e.At) {
				late := e.At - began.At - began.Bound
				return an.violation("promptness", e.Path, e.At,
					"%v: what was %s at %v with a bound of %v ended at %v, %v late",
					e.ID, began.Kind, began.At, began.Bound, e.At, late)
			}
		}
	}
	return nil
}

// checkExclusion demands that whoever holds a lock, and has no reason to doubt it, holds
// it alone, or only with others of the mode.
func (an *analysis) checkExclusion() error {
	for _, path := range an.paths {
		for _, a := range an.byPath[path] {
			for _, from := range an.live(a) {
				with := an.liveAt(path, from.begin, a)
				if why := an.conflict(path, with); why != "" {
					return an.violation(
						"exclusion", path, from.begin, "%s at %v: %v", why, from.begin,
						with,
					)
				}
			}
		}
	}
	return nil
}

// liveAt returns who else holds the path when one of a's intervals begins, and a. An
// overlap that is no longer than the slack does not count.
func (an *analysis) liveAt(path string, at time.Duration, a *acquisition) []*acquisition {
	found := []*acquisition{a}
	for _, b := range an.byPath[path] {
		if b == a || at < b.grantedAt || b.doubted <= at { // it cannot be live
			continue
		}
		var slack time.Duration
		if b.Worker != a.Worker {
			slack = an.limits.Slack
		}
		for _, i := range an.live(b) {
			if i.begin <= at && at+slack < i.end {
				found = append(found, b)
			}
		}
	}
	return found
}

// conflict tells why these may not hold the path together, "" if they may.
func (an *analysis) conflict(path string, with []*acquisition) string {
	leased := 0
	for _, a := range with {
		if a.mode == Leased {
			leased++
		}
		for _, b := range with {
			if a.mode == Exclusive && !a.sameOwner(b) {
				return "an exclusive holder is not alone"
			}
		}
	}
	if limit := an.limits.Leases[path]; leased > limit {
		return fmt.Sprintf("%d leases of %d are out", leased, limit)
	}
	return ""
}

// checkLosses demands that a worker who has no line to any server any more has told of
// the loss of what it holds a twentieth of the session timeout before the servers can end
// the session. Nothing that they have confirmed was sent after the cut.
func (an *analysis) checkLosses() error {
	t := an.limits.Session
	if t == 0 {
		return nil
	}
	for _, path := range an.paths {
		for _, a := range an.byPath[path] {
			for _, cut := range an.cuts[a.Worker] {
				due := cut.begin + t - t/20 + an.limits.Slack
				if a.held && a.grantedAt <= due && a.doubted > due && cut.end > due &&
					!an.wasPaused(a.Worker, cut.begin, due) {
					return an.violation("losses", path, due,
						"%v was cut off at %v, and had not told of the loss by %v", a,
						cut.begin, due)
				}
			}
		}
	}
	return nil
}

// checkTokens demands that tokens grow with the grants.
func (an *analysis) checkTokens() error {
	for _, path := range an.paths {
		granted := an.granted(path)
		for i, b := range granted {
			for _, a := range granted[:i] {
				if why := an.tokenFault(a, b); why != "" {
					return an.violation(
						"tokens", path, b.grantedAt, "%s: %v, then %v", why, a, b,
					)
				}
			}
		}
	}
	return nil
}

// tokenFault tells what is wrong with the tokens of two grants in their order, "" if
// nothing is.
func (an *analysis) tokenFault(a, b *acquisition) string {
	switch {
	case b.under && a.sameOwner(b) && a.Step == b.Step && b.token == a.token:
		return ""
	case b.under && a.sameOwner(b) && a.Step == b.Step && a.doubtedIn > b.grantedIn:
		return "a read lock under a write lock has another token"
	case a.mode == Shared && b.mode == Shared:
		return "" // readers come in any order
	case a.mode == Leased && a.grantedAt >= b.calledAt:
		// Asked for together, or by one who lost its turn meanwhile and got them all the
		// same, behind another who had it next.
		return ""
	case a.grantedAt >= an.grantedEarliest(b):
		return ""
	case a.sharesPlace(b):
		return ""
	case b.token <= a.token:
		return "a later holder's token is not greater"
	}
	return ""
}

// checkFence demands that a store never accepts an earlier holder's write after a later
// holder's, and refuses nobody who holds the lock without a doubt. A store that ZooKeeper
// guards accepts nothing of an earlier holder once there is a later one. And nobody is
// given the hold of another.
func (an *analysis) checkFence() error {
	for _, path := range an.paths {
		for _, to := range []store{{path: path}, {path: path, guarded: true}} {
			if err := an.checkStore(to); err != nil {
				return err
			}
		}
	}
	return nil
}

func (an *analysis) checkStore(to store) error {
	var accepted []*access
	for _, w := range an.accesses[to] {
		if w.refused && an.liveThrough(w.by, w.begin, w.end) {
			return an.violation(
				"fence", to.path, w.end, "%v was refused, who held the lock", w.by,
			)
		}
		if w.node != "" && w.node != w.by.node {
			return an.violation(
				"fence", to.path, w.end, "%v wrote by the hold of another, %s", w.by,
				w.node,
			)
		}
		if w.version == 0 {
			continue
		}
		accepted = append(accepted, w)
		if b := an.successor(w); to.guarded && b != nil {
			return an.violation("fence", to.path, w.end,
				"a guarded write was accepted: of %v (version %d, sent at %v), "+
					"although %v had the lock",
				w.by, w.version, w.begin, b)
		}
	}
	slices.SortStableFunc(accepted, func(a, b *access) int {
		return cmp.Compare(a.version, b.version)
	})
	for i, late := range accepted {
		for _, early := range accepted[:i] {
			if late.by != early.by && late.by.grantedAt < an.grantedEarliest(early.by) {
				return an.violation("fence", to.path, late.end,
					"a stale write was accepted: "+
						"%v wrote (version %d) after %v had (version %d)",
					late.by, late.version, early.by, early.version)
			}
		}
	}
	return nil
}

// successor is a later holder of another owner who had the lock when an exclusive holder
// sent a write, nil if there was none: then the writer's znode was gone.
func (an *analysis) successor(w *access) *acquisition {
	for _, b := range an.byPath[w.by.path] {
		later := b.held && !b.sameOwner(w.by) && w.by.grantedAt < an.grantedEarliest(b)
		if later && b.grantedAt < w.begin {
			return b
		}
	}
	return nil
}

// checkReleases demands that a release that reports success was one: nobody else had got
// the lock until it began, whatever pauses and forced ends of sessions there were, unless
// it could not find out.
func (an *analysis) checkReleases() error {
	for _, path := range an.paths {
		granted := an.granted(path)
		for _, a := range granted {
			if a.mode == Leased || a.outcome != OK || !a.released || an.endsUnseen(a) {
				continue
			}
			for _, b := range granted {
				excludes := (a.mode == Exclusive || b.mode == Exclusive) &&
					!a.sameOwner(b)
				if excludes && a.grantedAt < an.grantedEarliest(b) &&
					b.grantedAt < a.releasingAt {
					return an.violation(
						"releases", path, a.releasedAt,
						"%v released without an error, but had lost the lock to %v", a, b,
					)
				}
			}
		}
	}
	return nil
}

// handedOn tells whether a's process has had the lock, at the time of b or since, and let
// a have it, which it may do without asking; and a had it no longer than until it had to
// know that its znode was deleted.
func (an *analysis) handedOn(b, a *acquisition, deleted time.Duration) bool {
	before := func(c *acquisition) bool {
		excludes := a.mode == Exclusive || c.mode == Exclusive
		return excludes && c.Worker == a.Worker && c.grantedAt >= b.grantedAt &&
			c.releasingAt <= a.grantedAt
	}
	return a.doubted <= an.toldBy(deleted) &&
		slices.ContainsFunc(an.granted(a.path), before)
}

// eventDelay is what may pass between a grant and the news that its znode had gone
// before: what happened while the connection was away the client tells in any order.
const eventDelay = time.Millisecond

// checkRemovals demands that nobody gets the lock with a znode that was deleted while
// another held it: whoever sees that the other has gone can see that, too. Within a
// process nobody has to see that, and the news can be under way: see handedOn.
func (an *analysis) checkRemovals() error {
	for _, path := range an.paths {
		granted := an.granted(path)
		for _, a := range granted {
			gone, removed := an.removed[a.node]
			if !removed || a.lost && a.lostAt <= a.grantedAt+eventDelay {
				continue
			}
			for _, b := range granted {
				excludes := (a.mode == Exclusive || b.mode == Exclusive) &&
					!a.sameOwner(b) && !a.sharesPlace(b)
				through := b.grantedAt < gone.begin && gone.end < b.releasingAt &&
					b.released && b.outcome == OK
				if excludes && through && b.releasingAt < a.grantedAt &&
					!an.handedOn(b, a, gone.begin) {
					return an.violation("removals", path, a.grantedAt,
						"%v was granted although its znode %s was deleted "+
							"from %v to %v, when %v held the lock",
						a, a.node, gone.begin, gone.end, b)
				}
			}
		}
	}
	return nil
}
