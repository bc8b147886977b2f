package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A crowd is who holds and who waits in some locks, by session. A session stands for all
// that its process does: two of its goroutines, of which one holds and the other waits,
// look as one that does both. So what it finds is possible, and not certain. A run inside
// another, which its data tell, is taken for one with it.
type crowd struct {
	waiting map[string][]row  // by session
	queue   map[string][]row  // by queue, in order
	within  map[string]string // by the session of a run, that of the run around it
}

func newCrowd() *crowd {
	return &crowd{
		waiting: map[string][]row{}, queue: map[string][]row{},
		within: map[string]string{},
	}
}

// queueOf names the queue in which a row stands: one path can have several.
func queueOf(r row) string {
	kind := r.Kind
	if kind == "read" {
		kind = "write"
	}
	return zkpath.Parent(r.Node) + " " + kind
}

// add adds the rows of a lock, each of one znode.
func (c *crowd) add(rows []row) {
	for _, r := range rows {
		if r.Session == "0x0" {
			continue // of nobody; doctor tells of it
		}
		if found := around.FindStringSubmatch(r.Data); found != nil {
			c.within[r.Session] = found[1]
		}
		c.queue[queueOf(r)] = append(c.queue[queueOf(r)], r)
	}
}

// ahead are those for whom a row waits: for all of them; or, where oneDoes says so, for
// any of them, as for a lease.
func (c *crowd) ahead(r row) (all []row, oneDoes bool) {
	oneDoes = r.Kind == "lease"
	for _, other := range c.queue[queueOf(r)] {
		switch {
		case other.Node == r.Node:
			return all, oneDoes
		case other.Session == r.Session:
		case oneDoes && other.State == waits:
		case r.Kind == "read" && other.Kind == "read":
		default:
			all = append(all, other)
		}
	}
	return all, oneDoes
}

// settle is called when all rows have been added: it gives runs inside each other one
// session, and notes who waits.
func (c *crowd) settle() {
	for _, rows := range c.queue {
		for i := range rows {
			r := &rows[i]
			for range c.within { // as deep as they can be, whatever data may say
				if outer, inside := c.within[r.Session]; inside {
					r.Session = outer
				}
			}
			if r.State == waits {
				c.waiting[r.Session] = append(c.waiting[r.Session], *r)
			}
		}
	}
}

// stuck are the sessions that wait for each other: who waits for nobody, or only for
// those who will release, is removed until nobody more can be.
func (c *crowd) stuck() map[string]bool {
	stuck := map[string]bool{}
	for session := range c.waiting {
		stuck[session] = true
	}
	for again := true; again; {
		again = false
		for session := range stuck {
			if !slices.ContainsFunc(c.waiting[session], func(r row) bool {
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
func (c *crowd) blocked(r row, stuck map[string]bool) bool {
	ahead, oneDoes := c.ahead(r)
	isStuck := func(other row) bool { return stuck[other.Session] }
	if oneDoes {
		free := func(other row) bool { return !isStuck(other) }
		return len(ahead) > 0 && !slices.ContainsFunc(ahead, free)
	}
	return slices.ContainsFunc(ahead, isStuck)
}

// A wait is one session that waits for another.
type wait struct {
	who    string
	wanted row
	by     row
}

// circles returns one circle for each session that is stuck and in one, each circle once.
func (c *crowd) circles() (all [][]wait) {
	stuck := c.stuck()
	told := map[string]bool{}
	for _, session := range slices.Sorted(maps.Keys(stuck)) {
		if told[session] {
			continue
		}
		circle := c.circle(session, stuck)
		for _, w := range circle {
			told[w.who] = true
		}
		if len(circle) > 0 {
			all = append(all, circle)
		}
	}
	return all
}

// circle is a shortest way from a session back to it; nil if there is none.
func (c *crowd) circle(from string, stuck map[string]bool) []wait {
	came := map[string]wait{} // by the session that is waited for
	for next := []string{from}; len(next) > 0; next = next[1:] {
		for _, w := range c.waits(next[0], stuck) {
			if _, known := came[w.by.Session]; known {
				continue
			}
			came[w.by.Session] = w
			if w.by.Session == from {
				circle := []wait{w}
				for circle[0].who != from {
					circle = slices.Insert(circle, 0, came[circle[0].who])
				}
				return circle
			}
			next = append(next, w.by.Session)
		}
	}
	return nil
}

// waits are those of a session for others that are stuck, first those for who holds.
func (c *crowd) waits(session string, stuck map[string]bool) (all []wait) {
	for _, r := range c.waiting[session] {
		if !c.blocked(r, stuck) {
			continue
		}
		ahead, _ := c.ahead(r)
		for _, other := range ahead {
			if stuck[other.Session] {
				all = append(all, wait{who: session, wanted: r, by: other})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b wait) int {
		return strings.Compare(a.by.State, b.by.State) // holds, waits
	})
	return all
}

// circleText tells of a circle.
func circleText(circle []wait) string {
	var text strings.Builder
	since := time.Time{}
	for i, w := range circle {
		before := circle[(i+len(circle)-1)%len(circle)].by // by which it is waited for
		if i == 0 {
			fmt.Fprintf(&text, "session %s %s %s and waits for %s", w.who,
				standing(before), before.Path, w.wanted.Path)
		} else {
			fmt.Fprintf(&text, ", behind session %s, which %s %s and waits for %s", w.who,
				standing(before), before.Path, w.wanted.Path)
		}
		if w.wanted.Since.After(since) {
			since = w.wanted.Since
		}
	}
	return fmt.Sprintf("%s, since %s", text.String(),
		since.Local().Format(time.DateTime))
}

// standing says how one stands in the way of others.
func standing(r row) string {
	if r.State == holds {
		return "holds"
	}
	return "waits, ahead, for"
}

// deadlocks looks for those below a path.
func (d *doctor) deadlocks(ctx context.Context) error {
	all := newCrowd()
	locks := 0
	first := &head{Client: d.client, most: listMost}
	w := &walk{
		client: d.client, most: listMost * looksPerRow, each: listMost,
		visit: func(path string) error {
			ctx, cancel := context.WithTimeoutCause(ctx, answerLimit,
				recipes.ErrUnavailable)
			defer cancel()
			rows, left, err := first.members(ctx, path)
			all.add(rows)
			locks++
			d.unseen(path, left, "in the queue")
			return err
		},
		skip: func(path string, err error) {
			d.doubt("%s was not looked at: %v", path, err)
		},
	}
	if err := w.down(ctx, d.path); err != nil {
		return err
	}
	if w.left > 0 {
		d.doubt("%s: %d znodes, and what is below them, were not looked at", d.path,
			w.left)
	}
	all.settle()
	circles := all.circles()
	if len(circles) == 0 {
		d.well("%s: no session waits for itself by way of others, in %d locks", d.path,
			locks)
	}
	for _, circle := range circles {
		d.find("possible: %s", circleText(circle))
		for _, one := range circle {
			d.doubt("session %s is %q", one.who, shorten(one.wanted.Data, dataMost))
		}
	}
	if d.ill {
		return exitWith(exitFindings)
	}
	return nil
}
