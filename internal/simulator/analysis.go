package simulator

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// never is a time that does not come.
const never = time.Duration(math.MaxInt64)

// An analysis is a history by what the checks look for.
type analysis struct {
	history  History
	limits   Limits
	paths    []string                   // in order of their first event
	byPath   map[string][]*acquisition  // in order of their calls
	accesses map[store][]*access        // in order of their ends
	pauses   map[int][]interval         // by worker
	cuts     map[int][]interval         // likewise: when it had no line to any server
	expired  map[int64][]time.Duration  // by session
	closings map[int64][]time.Duration  // likewise
	removing map[string][]time.Duration // by znode: when somebody set out to delete it
	// By znode: from the first of these on it may have been gone, and from when on it
	// surely was.
	removed map[string]interval
	calm    time.Duration // from when on there were no faults; never if there was no time
}

// An interval is a time from begin on and before end.
type interval struct{ begin, end time.Duration }

// endAll ends those that have not ended yet.
func endAll(of []interval, at time.Duration) {
	for i := range of {
		of[i].end = min(of[i].end, at)
	}
}

// An acquisition is what became of one call to acquire. Times of what did not happen are
// never; places are those of the event in the history.
type acquisition struct {
	ID
	path    string
	mode    Mode
	under   bool
	token   int64
	node    string
	session int64
	margin  time.Duration
	cached  bool    // others of its process may have had its znode before
	outcome Outcome // of the release

	calledAt, grantedAt, lostAt, releasingAt, releasedAt time.Duration
	calledIn, grantedIn, lostIn, releasingIn, releasedIn int
	held, lost, releasing, released                      bool

	queuedAt   time.Duration // when it joined the queue last, by queuedNode
	queuedNode string        // "" if nothing tells
	failedAt   time.Duration

	// From when on the holder does not count as one: it is lost, or about to be released.
	doubted   time.Duration
	doubtedIn int
}

func (a *acquisition) sameOwner(b *acquisition) bool {
	return a.Worker == b.Worker && a.Owner == b.Owner
}

// sharesPlace tells whether both came by one place in the queue, with one znode, that
// their process has kept; or b by a place beside that.
func (a *acquisition) sharesPlace(b *acquisition) bool {
	return a.cached && b.cached && a.Worker == b.Worker && a.token == b.token &&
		(a.node == b.node || b.under)
}

func (a *acquisition) String() string {
	text := fmt.Sprintf(
		"%v (%s, token %d, granted at %v", a.ID, a.mode, a.token, a.grantedAt,
	)
	if a.lost {
		text += fmt.Sprintf(", lost at %v", a.lostAt)
	}
	if a.releasing {
		text += fmt.Sprintf(", releasing at %v", a.releasingAt)
	}
	return text + ")"
}

// A store is one that a lock protects: it goes by tokens, or it is guarded by ZooKeeper,
// which looks whether the lock is held.
type store struct {
	path    string // of the lock
	guarded bool
}

// An access is one to a store.
type access struct {
	by         *acquisition
	begin, end time.Duration
	node       string // of the hold that it was made by, "" if unknown
	version    int64  // of a write that was accepted, else 0
	refused    bool
}

// newAnalysis fails where a history is none.
func newAnalysis(h History, l Limits) (*analysis, error) {
	an := &analysis{
		history: h, limits: l, byPath: map[string][]*acquisition{},
		accesses: map[store][]*access{},
		pauses:   map[int][]interval{}, cuts: map[int][]interval{},
		expired:  map[int64][]time.Duration{},
		closings: map[int64][]time.Duration{},
		removing: map[string][]time.Duration{}, removed: map[string]interval{},
		calm: never,
	}
	open := map[ID]*acquisition{}
	writing := map[ID]Event{}
	for i, e := range h {
		switch e.Kind {
		case Called:
			a := &acquisition{
				ID: e.ID, path: e.Path, mode: e.Mode, under: e.Under, calledAt: e.At,
				calledIn:  i,
				grantedAt: never, lostAt: never, releasingAt: never, releasedAt: never,
				doubted: never, doubtedIn: len(h), queuedAt: never, failedAt: never,
			}
			if open[e.ID] != nil {
				return nil, fmt.Errorf("simulator: not a history: called twice: %v", e)
			}
			open[e.ID] = a
			if an.byPath[a.path] == nil {
				an.paths = append(an.paths, a.path)
			}
			an.byPath[a.path] = append(an.byPath[a.path], a)
		case Queued, Failed, Granted, Lost, Releasing, Released:
			if open[e.ID] == nil {
				return nil, fmt.Errorf("simulator: not a history: was not called: %v", e)
			}
			open[e.ID].take(e, i)
		case Writing:
			writing[e.ID] = e
		case Written, Refused:
			by := open[e.ID]
			if by == nil || !by.held {
				return nil, fmt.Errorf("simulator: not a history: was not granted: %v", e)
			}
			to := store{e.Path, e.Guarded}
			an.accesses[to] = append(an.accesses[to], &access{
				by: by, begin: writing[e.ID].At, end: e.At, node: writing[e.ID].Node,
				version: e.Version, refused: e.Kind == Refused,
			})
		default:
			an.take(e)
		}
	}
	return an, nil
}

// take notes an event of a process or a session.
func (an *analysis) take(e Event) {
	switch e.Kind {
	case Paused:
		an.pauses[e.Worker] = append(an.pauses[e.Worker], interval{e.At, never})
	case Resumed:
		endAll(an.pauses[e.Worker], e.At)
	case Cut:
		an.cuts[e.Worker] = append(an.cuts[e.Worker], interval{e.At, never})
	case Mended:
		endAll(an.cuts[e.Worker], e.At)
	case Expired:
		an.expired[e.Session] = append(an.expired[e.Session], e.At)
	case Closing:
		an.closings[e.Session] = append(an.closings[e.Session], e.At)
	case Removing:
		if len(an.removing[e.Node]) == 0 {
			an.removed[e.Node] = interval{e.At, never}
		}
		an.removing[e.Node] = append(an.removing[e.Node], e.At)
	case Calm:
		an.calm = e.At
	case Removed:
		an.removed[e.Node] = interval{an.removed[e.Node].begin, e.At}
	}
}

// take notes an event of the acquisition, at a place in the history.
func (a *acquisition) take(e Event, place int) {
	switch e.Kind {
	case Queued:
		a.queuedAt, a.queuedNode = e.At, e.Node
	case Failed:
		a.failedAt = e.At
	case Granted:
		// A multi lock may return with a member that it had lost before it had the
		// others, and whose hold cannot be read then. To the checks it was not granted:
		// it is not known when that was.
		a.held = e.Token != 0
		a.grantedAt, a.grantedIn = e.At, place
		a.token, a.node, a.session = e.Token, e.Node, e.Session
		a.cached, a.margin = e.Cached, e.Margin
	case Lost:
		a.lost, a.lostAt, a.lostIn = true, e.At, place
		a.doubted, a.doubtedIn = min(a.doubted, e.At), min(a.doubtedIn, place)
	case Releasing:
		a.releasing, a.releasingAt, a.releasingIn = true, e.At, place
		a.doubted, a.doubtedIn = min(a.doubted, e.At), min(a.doubtedIn, place)
	case Released:
		a.released, a.releasedAt, a.releasedIn, a.outcome = true, e.At, place, e.Outcome
	}
}

// granted returns the acquisitions of a path that were granted, in that order.
func (an *analysis) granted(path string) []*acquisition {
	held := slices.DeleteFunc(slices.Clone(an.byPath[path]), func(a *acquisition) bool {
		return !a.held
	})
	slices.SortFunc(held, func(a, b *acquisition) int {
		return a.grantedIn - b.grantedIn
	})
	return held
}

// live returns when the holder has the lock and no reason to doubt it: from the grant
// until it is lost or about to be released, not while the process is stopped, and not
// while it need not know that its session was ended by force, or its znode deleted.
func (an *analysis) live(a *acquisition) []interval {
	if !a.held {
		return nil
	}
	live := without([]interval{{a.grantedAt, a.doubted}}, interval{never, never})
	for _, at := range an.expired[a.session] {
		live = without(live, interval{at, an.toldBy(at)})
	}
	for _, at := range an.removing[a.node] {
		live = without(live, interval{at, an.toldBy(an.deletedBy(a.node, at))})
	}
	for _, p := range an.pauses[a.Worker] {
		live = without(live, interval{p.begin, an.over(p)})
	}
	return live
}

// without cuts an interval out of others.
func without(from []interval, cut interval) (left []interval) {
	for _, i := range from {
		if i.begin < cut.begin {
			left = append(left, interval{i.begin, min(i.end, cut.begin)})
		}
		if cut.end < i.end {
			left = append(left, interval{max(i.begin, cut.end), i.end})
		}
	}
	return slices.DeleteFunc(left, func(i interval) bool { return i.begin >= i.end })
}

// deletedBy is when the znode that somebody set out to delete was deleted at the latest:
// where a server was cut off, long after that. Where no answer came, it is taken to have
// happened at once.
func (an *analysis) deletedBy(node string, at time.Duration) time.Duration {
	if gone := an.removed[node]; gone.end != never {
		return max(at, gone.end)
	}
	return at
}

// toldBy is when a holder must know at the latest that its session was ended by force, or
// its znode deleted.
func (an *analysis) toldBy(at time.Duration) time.Duration {
	if an.limits.Told == 0 {
		return never
	}
	return at + an.limits.Told
}

// forcedEnds are when a's session was, or was perhaps, ended by force, or its znode
// deleted, which it could not know in time.
func (an *analysis) forcedEnds(a *acquisition) []time.Duration {
	return slices.Concat(an.expired[a.session], an.removing[a.node])
}

// nothingLeft tells whether a was let into a place that had ended by force before, which
// its process did not know.
func (an *analysis) nothingLeft(a *acquisition) bool {
	return a.cached && slices.ContainsFunc(an.forcedEnds(a),
		func(at time.Duration) bool { return at <= a.grantedAt })
}

// endsUnseen tells whether a's hold may have ended by force and its release not have
// found out: where somebody else deleted the znode, since when an answer is lost nobody
// can tell whose delete it was; and where its place was kept, so that the release asked
// nothing.
func (an *analysis) endsUnseen(a *acquisition) bool {
	_, removed := an.removed[a.node]
	return removed || a.cached && slices.ContainsFunc(an.expired[a.session],
		func(at time.Duration) bool { return at <= a.releasedAt })
}

// over is when a pause is over, and what was missed is known.
func (an *analysis) over(pause interval) time.Duration {
	if pause.end == never {
		return never
	}
	return pause.end + an.limits.Grace
}

// liveThrough tells whether a was live all the time from begin to end.
func (an *analysis) liveThrough(a *acquisition, begin, end time.Duration) bool {
	return slices.ContainsFunc(an.live(a), func(i interval) bool {
		return i.begin <= begin && end < i.end
	})
}

// wasPaused tells whether a worker's process was stopped at some time between two.
func (an *analysis) wasPaused(worker int, begin, end time.Duration) bool {
	return slices.ContainsFunc(an.pauses[worker], func(p interval) bool {
		return p.begin <= end && an.over(p) >= begin
	})
}

// grantedEarliest is when a was granted at the earliest. That may have been before the
// call returned: where its process was stopped meanwhile, and where its session had been
// ended by force or its znode deleted, which it did not know.
func (an *analysis) grantedEarliest(a *acquisition) time.Duration {
	at := a.grantedAt
	for _, end := range an.forcedEnds(a) {
		switch {
		case end > a.grantedAt:
		case a.cached: // the place was granted before that
			at = min(at, end, a.calledAt)
		default:
			at = min(at, a.calledAt)
		}
	}
	for _, p := range an.pauses[a.Worker] {
		if p.begin <= a.grantedAt && an.over(p) >= a.calledAt {
			at = min(at, max(p.begin, a.calledAt))
		}
	}
	return at
}
