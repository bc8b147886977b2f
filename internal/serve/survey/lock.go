package survey

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A lock is a path at which there is, or was, a queue. All of it is guarded by Survey.mu;
// the slices are replaced and never changed, so that a State may share them.
type lock struct {
	path   string
	recipe string // as it was last seen; "": nobody was seen in its queue yet
	leased bool   // it has leases, so it is a semaphore, if it has a gate or not
	dirs   [len(subs)]*dir

	members []queues.Row  // a row for each znode
	queue   []Participant // as people see it: a row for each run
	more    int           // participants that were not read
	rights  string        // who has more than they should; "": nobody is known

	stays     []Stay // the last that have left, in order
	dropped   int    // of stays: see history
	handovers uint64
	missed    uint64    // participants that came and left unseen
	changed   time.Time // when that was seen last
}

// subs are where participants are: below a lock's path, and below a semaphore's.
var subs = [...]string{"", observe.LeasesDir, observe.GateDir}

// A dir is a directory that is watched, or was. What is not guarded by Survey.mu belongs
// to the goroutine that looks at it.
type dir struct {
	path string
	sub  string
	lock *lock // whose it is

	// Guarded by Survey.mu.
	stat     *zk.Stat // as of the last look; nil: there is no such znode
	children []string // as of the last look, sorted
	inside   map[string]inmate
	listed   *zk.Stat  // as the walk listed it before the first look
	unread   int       // participants beyond those that are read
	watched  bool      // its token is with a watch, or with somebody who looks
	dropped  int       // the last walk when its watch was lost; 0: it was not
	stale    time.Time // since when what is known may be old; zero: it is not

	next time.Time // when it may be looked at again
}

// isAnother tells whether a directory was deleted and created again since it was listed.
func (d *dir) isAnother(now *zk.Stat) bool {
	before := cmp.Or(d.stat, d.listed, now)
	return now != nil && before.Czxid != now.Czxid
}

// An inmate is a znode in a queue, as it was read.
type inmate struct {
	recipes.Participant
	czxid     int64
	noted     time.Time // when its owner wrote it again: zklock does, once it holds
	directory bool      // it has, or has had, children, and is no participant
	gone      bool      // it has left since it was listed
}

// isSemaphore tells it by what is in the lock's path, and by who has a lease.
func (l *lock) isSemaphore() bool {
	has := l.leased || l.dirs[1] != nil && len(l.dirs[1].inside) > 0
	return has || l.dirs[0] != nil && queues.IsSemaphore(l.dirs[0].children)
}

// participants are the znodes in the queue of a lock, in order.
func (l *lock) participants() []recipes.Participant {
	own := judged(l.dirs[0])
	leases, gate := judged(l.dirs[1]), judged(l.dirs[2])
	for i := range gate {
		gate[i].Holding = false
	}
	if len(gate) > 0 {
		lodgers := make([]observe.Lodger, len(leases))
		for i, lease := range leases {
			lodgers[i] = lease.lodger()
		}
		if i := observe.Unheld(gate[0].lodger(), lodgers); i >= 0 {
			leases[i].Holding = false
		}
	}
	var all []recipes.Participant
	for _, one := range slices.Concat(own, leases, gate) {
		all = append(all, one.Participant)
	}
	return all
}

func (i inmate) lodger() observe.Lodger {
	return observe.Lodger{Session: i.Session, Czxid: i.czxid}
}

// judged are the participants in a directory, in order.
func judged(d *dir) (all []inmate) {
	if d == nil {
		return nil
	}
	names := slices.Collect(maps.Keys(d.inside))
	var ahead []seqname.Name
	for _, name := range queues.In(d.sub).Among(names) {
		one := d.inside[name.Text]
		if one.directory {
			continue
		}
		one.Holding = order.Excludes(observe.Excludes).Blocker(ahead, name) < 0
		all, ahead = append(all, one), append(ahead, name)
	}
	return all
}

// inmateAt returns what is known of a participant by its znode.
func (l *lock) inmateAt(node string) inmate {
	parent, name := zkpath.Parent(node), node[strings.LastIndex(node, "/")+1:]
	for _, d := range l.dirs {
		if d != nil && d.path == parent {
			return d.inside[name]
		}
	}
	return inmate{}
}

// recipeOf names the recipe by the kinds of the participants.
func recipeOf(members []queues.Row, semaphore bool) string {
	kinds := map[string]bool{}
	for _, m := range members {
		kinds[m.Kind] = true
	}
	latch, shared := kinds["latch"], kinds["read"] || kinds["write"]
	switch {
	case semaphore && !latch && !shared:
		return "semaphore"
	case semaphore, latch && (kinds["lock"] || shared):
		return mixed
	case latch:
		return "leader latch"
	case shared:
		return "read/write lock"
	case kinds["lock"]:
		return "mutex"
	}
	return ""
}

// mixed is the recipe of a path that several use which do not exclude each other. A run
// of zklock has a mutex and a write lock on purpose.
const mixed = "several"

// A seen is a change of a queue, as of a time.
type seen struct {
	at    time.Time
	first bool // nothing was known of the queue before
}

// update takes over the queue as it is now. It returns what has happened.
func (l *lock) update(now seen, h *history) (events []Event) {
	rows := queues.RowsOf(l.path, l.participants())
	l.members = rows
	if recipe := recipeOf(rows, l.isSemaphore()); recipe != "" {
		l.recipe = recipe
	}
	before := map[string]Participant{}
	for _, p := range l.queue {
		before[p.Node] = p
	}
	paired := queues.Pair(slices.Clone(rows))
	queue := make([]Participant, len(paired))
	for i, r := range paired {
		old, known := before[r.Node]
		delete(before, r.Node)
		queue[i] = Participant{Row: r, Held: old.Held}
		if r.State == queues.Holds && old.Held.IsZero() {
			queue[i].Held = l.heldSince(r, known, now)
			if !now.first {
				l.handovers++
				events = append(events, l.event(Granted, queue[i], now.at))
			}
		}
		if !known || old.State != r.State {
			l.changed = now.at
		}
	}
	for _, p := range l.queue { // in order
		if _, left := before[p.Node]; left {
			l.changed = now.at
			h.add(l, stayOf(p, now.at))
			events = append(events, l.event(Left, p, now.at))
		}
	}
	l.queue = queue
	l.more = 0
	for _, d := range l.dirs {
		if d != nil {
			l.more += d.unread
		}
	}
	return events
}

// heldSince is since when a participant holds that is seen to hold for the first time. Of
// one that was seen waiting, that is now. Of another one it is when it joined, or wrote
// that it holds.
func (l *lock) heldSince(r queues.Row, waited bool, now seen) time.Time {
	if waited {
		return now.at
	}
	if noted := l.inmateAt(r.Node).noted; !noted.IsZero() {
		return noted
	}
	return r.Since
}

// An EventKind is what has happened in a queue.
type EventKind string

// What can happen in a queue.
const (
	Granted EventKind = "granted" // a participant holds
	Left    EventKind = "left"    // one has left
)

// An Event is what has happened in a queue.
type Event struct {
	Kind   EventKind   `json:"kind"`
	At     time.Time   `json:"at"`
	Path   string      `json:"path"`
	Recipe string      `json:"recipe"`
	Who    Participant `json:"who"`
}

func (l *lock) event(kind EventKind, who Participant, at time.Time) Event {
	return Event{Kind: kind, At: at, Path: l.path, Recipe: l.recipe, Who: who}
}

// Waited is for how long the participant waited; negative if it is not known to hold.
func (e Event) Waited() time.Duration {
	if e.Who.Held.IsZero() {
		return -1
	}
	return max(0, e.Who.Held.Sub(e.Who.Since))
}

// HeldFor is for how long a participant that has left held; negative if it never did.
func (e Event) HeldFor() time.Duration {
	if e.Kind != Left || e.Who.Held.IsZero() {
		return -1
	}
	return max(0, e.At.Sub(e.Who.Held))
}

// kindAt is what ls calls a participant, by its znode.
func kindAt(node string) string {
	base := node[strings.LastIndex(node, "/")+1:]
	for _, name := range queues.In("").Among([]string{base}) {
		return cmp.Or(observe.KindOf(name.Kind), observe.KindOf(observe.MutexName))
	}
	return ""
}
