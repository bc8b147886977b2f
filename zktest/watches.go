package zktest

import (
	"cmp"
	"slices"
	"strings"
)

type watchKind int

const (
	watchData  watchKind = iota // set by getData and exists
	watchChild                  // set by getChildren
	watchKinds                  // how many kinds there are
)

// watchedBy are the watches that checkWatches and removeWatches speak of
// (Watcher.WatcherType).
var watchedBy = map[int32][]watchKind{
	1: {watchChild},
	2: {watchData},
	3: {watchData, watchChild},
}

// A watchMode says how long a watch lasts and how far it sees.
type watchMode int

const (
	watchOnce       watchMode = iota // until it fires
	watchPersistent                  // until it is removed
	watchRecursive                   // likewise, with all that is below
)

// watchModes are those that addWatch asks for (ZooDefs.AddWatchModes).
var watchModes = map[int32]watchMode{0: watchPersistent, 1: watchRecursive}

// A watchTable has the watches set on one server, by the connections of the watchers. Of
// each kind a watcher has one at most on a path.
type watchTable struct {
	watches [watchKinds]map[string]map[*conn]watch
	added   uint64
}

type watch struct {
	since uint64 // counts the watches of the table
	mode  watchMode
}

func newWatchTable() watchTable {
	var w watchTable
	for kind := range w.watches {
		w.watches[kind] = map[string]map[*conn]watch{}
	}
	return w
}

// add sets a watch that fires once. One that is set already stays, but that a persistent
// one is persistent no longer (WatchManager.addWatch).
func (w *watchTable) add(kind watchKind, path string, who *conn) {
	w.set(kind, path, who, watchOnce)
}

// persist sets persistent watches, which are of both kinds.
func (w *watchTable) persist(mode watchMode, who *conn, paths ...string) {
	for _, path := range paths {
		w.set(watchData, path, who, mode)
		w.set(watchChild, path, who, mode)
	}
}

func (w *watchTable) set(kind watchKind, path string, who *conn, mode watchMode) {
	at := w.watches[kind][path]
	if at == nil {
		at = map[*conn]watch{}
		w.watches[kind][path] = at
	}
	one, ok := at[who]
	if !ok {
		w.added++
		one.since = w.added
	}
	one.mode = mode
	at[who] = one
}

// answer is that to checkWatches or removeWatches.
func (w *watchTable) answer(op opcode, asked watcherRequest, who *conn) code {
	kinds, ok := watchedBy[asked.of]
	if !ok || op == opCheckWatches && asked.path != "" &&
		!strings.Contains(asked.path, "/") {
		return codeMarshalling
	}
	found := false
	for _, kind := range kinds {
		if op == opRemoveWatches {
			found = w.remove(kind, asked.path, who) || found
		} else {
			found = w.contains(kind, asked.path) || found
		}
	}
	if !found {
		return codeNoWatcher
	}
	return codeOK
}

// contains goes by anybody's watch on the path, as WatchManager.containsWatcher does.
func (w *watchTable) contains(kind watchKind, path string) bool {
	return path != "" && len(w.watches[kind][path]) > 0
}

// remove takes back one watch, in whichever mode; false if there is none.
func (w *watchTable) remove(kind watchKind, path string, who *conn) bool {
	at := w.watches[kind][path]
	if _, ok := at[who]; !ok {
		return false
	}
	delete(at, who)
	if len(at) == 0 {
		delete(w.watches[kind], path)
	}
	return true
}

// drop forgets a watcher whose connection is gone.
func (w *watchTable) drop(who *conn) {
	for kind, watches := range w.watches {
		for path := range watches {
			w.remove(watchKind(kind), path, who)
		}
	}
}

func (w *watchTable) count() int {
	n := 0
	for _, watches := range w.watches {
		for _, at := range watches {
			n += len(at)
		}
	}
	return n
}

// watchers counts those who watch anything in one way.
func (w *watchTable) watchers(kind watchKind) int {
	all := map[*conn]struct{}{}
	for _, at := range w.watches[kind] {
		for who := range at {
			all[who] = struct{}{}
		}
	}
	return len(all)
}

// trigger delivers events to those who watch for them, and removes the watches that are
// used up. Watchers of one event hear it in the order in which they set their watches;
// the real server has no order there.
func (w *watchTable) trigger(events []event, deliver func(*conn, event)) {
	for _, e := range events {
		switch e.kind {
		case eventNodeCreated, eventNodeDataChanged:
			w.fire(watchData, e, nil, deliver)
		case eventNodeChildrenChanged:
			w.fire(watchChild, e, nil, deliver)
		case eventNodeDeleted:
			heard := w.fire(watchData, e, nil, deliver)
			w.fire(watchChild, e, heard, deliver)
		}
	}
}

// fire leaves out those who have heard of the event, but their watches are used up all
// the same. It returns whom the event concerns.
func (w *watchTable) fire(
	kind watchKind, e event, heard map[*conn]uint64, deliver func(*conn, event),
) map[*conn]uint64 {
	concerned := w.concerned(kind, e)
	order := make([]*conn, 0, len(concerned))
	for who := range concerned {
		if _, ok := heard[who]; !ok {
			order = append(order, who)
		}
	}
	slices.SortFunc(order, func(a, b *conn) int {
		return cmp.Compare(concerned[a], concerned[b])
	})
	for _, who := range order {
		deliver(who, e)
	}
	return concerned
}

// concerned gives those who watch the path of an event or, recursively, one above it, and
// when they began to; watches that are used up are gone. Who watches recursively does not
// hear that children have changed: it hears of each child.
func (w *watchTable) concerned(kind watchKind, e event) map[*conn]uint64 {
	all := map[*conn]uint64{}
	for path := range upwards(e.path) {
		for who, one := range w.watches[kind][path] {
			switch {
			case one.mode == watchRecursive && e.kind == eventNodeChildrenChanged,
				one.mode != watchRecursive && path != e.path:
				continue
			case one.mode == watchOnce:
				w.remove(kind, path, who)
			}
			if since, ok := all[who]; !ok || one.since < since {
				all[who] = one.since
			}
		}
	}
	return all
}

// rewatch is for the watches of a client that comes from another connection. It gives the
// events that the client has missed since relativeZxid, which are sent ahead of the
// answer and to anybody, and calls watch for what has not happened yet.
func (t *tree) rewatch(
	r setWatchesRequest, watch func(kind watchKind, path string),
) []event {
	var missed []event
	look := func(
		paths []string, kind watchKind, change eventType, changed func(*node) int64,
	) {
		for _, path := range paths {
			switch n := t.nodes[path]; {
			case n == nil:
				missed = append(missed, event{kind: eventNodeDeleted, path: path})
			case changed(n) > r.relativeZxid:
				missed = append(missed, event{kind: change, path: path})
			default:
				watch(kind, path)
			}
		}
	}
	look(
		r.data, watchData, eventNodeDataChanged,
		func(n *node) int64 { return n.stat.mzxid },
	)
	for _, path := range r.exist {
		if t.nodes[path] != nil {
			missed = append(missed, event{kind: eventNodeCreated, path: path})
		} else {
			watch(watchData, path)
		}
	}
	look(
		r.child, watchChild, eventNodeChildrenChanged,
		func(n *node) int64 { return n.stat.pzxid },
	)
	return missed
}
