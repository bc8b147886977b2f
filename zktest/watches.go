package zktest

import (
	"cmp"
	"slices"
)

type watchKind int

const (
	watchData  watchKind = iota // set by getData and exists
	watchChild                  // set by getChildren
	watchKinds                  // how many kinds there are
)

// A watchTable has the watches set on one server, by watchers W.
type watchTable[W comparable] struct {
	watches [watchKinds]map[string]map[W]uint64 // to when the watch was set
	added   uint64
}

func newWatchTable[W comparable]() watchTable[W] {
	var w watchTable[W]
	for kind := range w.watches {
		w.watches[kind] = map[string]map[W]uint64{}
	}
	return w
}

// add does nothing for a watch that is set already.
func (w *watchTable[W]) add(kind watchKind, path string, who W) {
	at := w.watches[kind][path]
	if at == nil {
		at = map[W]uint64{}
		w.watches[kind][path] = at
	}
	if _, ok := at[who]; !ok {
		w.added++
		at[who] = w.added
	}
}

// drop forgets a watcher whose connection is gone.
func (w *watchTable[W]) drop(who W) {
	for _, watches := range w.watches {
		for path, at := range watches {
			delete(at, who)
			if len(at) == 0 {
				delete(watches, path)
			}
		}
	}
}

func (w *watchTable[W]) count() int {
	n := 0
	for _, watches := range w.watches {
		for _, at := range watches {
			n += len(at)
		}
	}
	return n
}

// watchers counts those who watch anything in one way.
func (w *watchTable[W]) watchers(kind watchKind) int {
	all := map[W]struct{}{}
	for _, at := range w.watches[kind] {
		for who := range at {
			all[who] = struct{}{}
		}
	}
	return len(all)
}

// trigger delivers events to those who watch for them, and removes their watches.
// Watchers of one event hear it in the order in which they set their watches; the real
// server has no order there.
func (w *watchTable[W]) trigger(events []event, deliver func(W, event)) {
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

// fire leaves out those who have heard of the event, but their watches are gone all the
// same.
func (w *watchTable[W]) fire(
	kind watchKind, e event, heard map[W]uint64, deliver func(W, event),
) map[W]uint64 {
	at := w.watches[kind][e.path]
	delete(w.watches[kind], e.path)
	order := make([]W, 0, len(at))
	for who := range at {
		if _, ok := heard[who]; !ok {
			order = append(order, who)
		}
	}
	slices.SortFunc(order, func(a, b W) int { return cmp.Compare(at[a], at[b]) })
	for _, who := range order {
		deliver(who, e)
	}
	return at
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
