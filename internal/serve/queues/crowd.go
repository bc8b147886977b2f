// Package queues knows the queues of locks by their znodes, whichever program created
// them: what is in them, who holds and who waits, and what is wrong with them. It sends
// no requests.
package queues

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

// around tells of a run inside another.
var around = regexp.MustCompile(`, in a run of session (0x[0-9a-f]+)\)$`)

// A Crowd is who holds and who waits in some locks, by session. A session stands for all
// that its process does: two of its goroutines, of which one holds and the other waits,
// look as one that does both. So what it finds is possible, and not certain. A run inside
// another, which its data tell, is taken for one with it.
type Crowd struct {
	waiting map[string][]Row  // by session
	queue   map[string][]Row  // by queue, in order
	within  map[string]string // by the session of a run, that of the run around it
	data    map[string]string // of one of its znodes, by session
}

// NewCrowd returns an empty Crowd.
func NewCrowd() *Crowd {
	return &Crowd{
		waiting: map[string][]Row{}, queue: map[string][]Row{},
		within: map[string]string{}, data: map[string]string{},
	}
}

// queueOf names the queue in which a row stands: one path can have several.
func queueOf(r Row) string {
	kind := r.Kind
	if kind == "read" {
		kind = "write"
	}
	return zkpath.Parent(r.Node) + " " + kind
}

// Add adds the rows of a lock, each of one znode.
func (c *Crowd) Add(rows []Row) {
	for _, r := range rows {
		if r.Session == NoSession {
			continue // of nobody; doctor tells of it
		}
		if found := around.FindStringSubmatch(r.Data); found != nil {
			c.within[r.Session] = found[1]
		}
		if c.data[r.Session] == "" {
			c.data[r.Session] = r.Data
		}
		c.queue[queueOf(r)] = append(c.queue[queueOf(r)], r)
	}
}

// ahead are those for whom a row waits: for all of them; or, where oneDoes says so, for
// any of them, as for a lease.
func (c *Crowd) ahead(r Row) (all []Row, oneDoes bool) {
	oneDoes = r.Kind == "lease"
	for _, other := range c.queue[queueOf(r)] {
		switch {
		case other.Node == r.Node:
			return all, oneDoes
		case other.Session == r.Session:
		case oneDoes && other.State == Waits:
		case r.Kind == "read" && other.Kind == "read":
		default:
			all = append(all, other)
		}
	}
	return all, oneDoes
}

// Settle is called when all rows have been added: it gives runs inside each other one
// session, and notes who waits.
func (c *Crowd) Settle() {
	for _, queue := range slices.Sorted(maps.Keys(c.queue)) {
		rows := c.queue[queue]
		for i := range rows {
			r := &rows[i]
			for range c.within { // as deep as they can be, whatever data may say
				if outer, inside := c.within[r.Session]; inside {
					r.Session = outer
				}
			}
			if r.State == Waits {
				c.waiting[r.Session] = append(c.waiting[r.Session], *r)
			}
		}
	}
}

// stuck are the sessions that wait for each other: who waits for nobody, or only for
// those who will release, is removed until nobody more can be.
func (c *Crowd) stuck() map[string]bool {
	stuck := map[string]bool{}
	for session := range c.waiting {
		stuck[session] = true
	}
	for again := true; again; {
		again = false
		for session := range stuck {
			if !slices.ContainsFunc(c.waiting[session], func(r Row) bool {
				return c.blocked(r, stuck)
			}) {
				delete(stuck, session)
				again = true
			}
		}
	}
	return stuck
}

// blocked tells whether a row waits for those who are stuck.
func (c *Crowd) blocked(r Row, stuck map[string]bool) bool {
	ahead, oneDoes := c.ahead(r)
	isStuck := func(other Row) bool { return stuck[other.Session] }
	if oneDoes {
		free := func(other Row) bool { return !isStuck(other) }
		return len(ahead) > 0 && !slices.ContainsFunc(ahead, free)
	}
	return slices.ContainsFunc(ahead, isStuck)
}

// A Wait is one session that waits for another.
type Wait struct {
	Who    string
	Data   string // of Who's own znode: of a run, not of one inside it
	Wanted Row
	By     Row
}

// Circles returns one circle for each session that is stuck and in one, each circle once.
func (c *Crowd) Circles() (all [][]Wait) {
	stuck := c.stuck()
	told := map[string]bool{}
	for _, session := range slices.Sorted(maps.Keys(stuck)) {
		if told[session] {
			continue
		}
		circle := c.circle(session, stuck)
		for _, w := range circle {
			told[w.Who] = true
		}
		if len(circle) > 0 {
			all = append(all, circle)
		}
	}
	return all
}

// circle is a shortest way from a session back to it; nil if there is none.
func (c *Crowd) circle(from string, stuck map[string]bool) []Wait {
	came := map[string]Wait{} // by the session that is waited for
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for _, w := range c.waits(next[0], stuck) {
			if _, known := came[w.By.Session]; known {
				continue
			}
			came[w.By.Session] = w
			if w.By.Session == from {
				circle := []Wait{w}
				for circle[0].Who != from {
					circle = slices.Insert(circle, 0, came[circle[0].Who])
				}
				return circle
			}
			next = append(next, w.By.Session)
		}
	}
	return nil
}

// waits are those of a session for others that are stuck, first those for who holds.
func (c *Crowd) waits(session string, stuck map[string]bool) (all []Wait) {
	for _, r := range c.waiting[session] {
		if !c.blocked(r, stuck) {
			continue
		}
		ahead, _ := c.ahead(r)
		for _, other := range ahead {
			if stuck[other.Session] {
				all = append(all, Wait{
					Who: session, Data: cmp.Or(c.data[session], r.Data), Wanted: r,
					By: other,
				})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Wait) int {
		return strings.Compare(a.By.State, b.By.State) // holds, waits
	})
	return all
}

// CircleText tells of a circle.
func CircleText(circle []Wait) string {
	var text strings.Builder
	since := time.Time{}
	for i, w := range circle {
		before := circle[(i+len(circle)-1)%len(circle)].By // by which it is waited for
		if i == 0 {
			fmt.Fprintf(&text, "session %s %s %s and waits for %s", w.Who,
				standing(before), before.Path, w.Wanted.Path)
		} else {
			fmt.Fprintf(&text, ", behind session %s, which %s %s and waits for %s", w.Who,
				standing(before), before.Path, w.Wanted.Path)
		}
		if w.Wanted.Since.After(since) {
			since = w.Wanted.Since
		}
	}
	return fmt.Sprintf("%s, since %s", text.String(),
		since.Local().Format(time.DateTime))
}

// standing says how one stands in the way of others.
func standing(r Row) string {
	if r.State == Holds {
		return "holds"
	}
	return "waits, ahead, for"
}
