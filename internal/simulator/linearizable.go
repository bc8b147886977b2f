package simulator

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// linearizeWithin bounds the search where Limits do not. It is wall-clock time: a history
// that takes 4 seconds took more than 10 on a busy machine.
const linearizeWithin = time.Minute

// An operation is one on the lock of one path, as the model sees it: an acquisition takes
// the lock, or gives it back.
type operation struct {
	by       *acquisition
	releases bool
}

// checkLinearizable demands that each path's acquisitions and releases can be put in an
// order in which a lock could have granted them, each between its call and its return. A
// search that takes too long is a failure: a lock's histories are nearly sequential, and
// such a one says that the history, or the model, is not what it should be.
func (an *analysis) checkLinearizable() error {
	within := an.limits.Linearize
	switch {
	case within < 0:
		return nil
	case within == 0:
		within = linearizeWithin
	}
	for _, path := range an.paths {
		model, operations := lockModel(an.limits.Leases[path]), an.operations(path)
		switch result := porcupine.CheckOperationsTimeout(
			model, operations, within,
		); result {
		case porcupine.Ok:
		case porcupine.Unknown:
			found := an.violation(
				"linearizability", path, never, "not decided within %v", within,
			)
			found.Undecided = true
			return found
		default:
			m := stuckAt(model, operations, within)
			return an.violation("linearizability", path, m.by.grantedAt,
				"there is no order in which a lock could have done this, "+
					"at the latest when it %s", m)
		}
	}
	return nil
}

// stuckAt returns the first operation that has no place behind the longest order that
// there is.
func stuckAt(
	model porcupine.Model, operations []porcupine.Operation, within time.Duration,
) operation {
	_, info := porcupine.CheckOperationsVerbose(model, operations, within)
	placed := map[operation]bool{}
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) <= len(placed) {
			continue
		}
		clear(placed)
		for _, o := range order {
			placed[o.Input.(operation)] = true
		}
	}
	rest := slices.DeleteFunc(slices.Clone(operations), func(o porcupine.Operation) bool {
		return placed[o.Input.(operation)]
	})
	return slices.MinFunc(
		rest,
		func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) },
	).Input.(operation)
}

// operations returns the operations on a path. Their times are places in the history, so
// that no two are equal.
func (an *analysis) operations(path string) []porcupine.Operation {
	clients := map[[2]int]int{}
	var operations []porcupine.Operation
	end := int64(len(an.history))
	for _, a := range an.granted(path) {
		if an.nothingLeft(a) {
			continue // no lock has granted it
		}
		owner := [2]int{a.Worker, a.Owner}
		if _, known := clients[owner]; !known {
			clients[owner] = len(clients)
		}
		from, to := an.gaveBack(a, end)
		operations = append(operations,
			porcupine.Operation{
				ClientId: clients[owner], Input: operation{by: a},
				Call: 2 * int64(a.calledIn), Return: 2 * int64(a.grantedIn),
			},
			porcupine.Operation{
				ClientId: clients[owner], Input: operation{by: a, releases: true},
				Call: from, Return: to,
			})
	}
	return operations
}

// gaveBack is between which times a hold has ended at the server. A lost one has at an
// unknown time before the loss was known.
func (an *analysis) gaveBack(a *acquisition, end int64) (from, to int64) {
	afterGrant, ended := 2*int64(a.grantedIn)+1, 2*end
	if an.grantedEarliest(a) < a.grantedAt {
		afterGrant = 2*int64(a.calledIn) + 1
	}
	unseen := an.endsUnseen(a)
	switch {
	case a.lost && (!a.releasing || a.lostIn < a.releasingIn):
		return afterGrant, max(afterGrant, 2*int64(a.lostIn))
	case a.released && a.outcome == OK && !unseen:
		return 2 * int64(a.releasingIn), 2 * int64(a.releasedIn)
	case a.released && (a.outcome == LockLost || a.outcome == OK):
		return afterGrant, 2 * int64(a.releasedIn)
	case a.releasing && !an.disturbed(a):
		return 2 * int64(a.releasingIn), ended
	}
	return afterGrant, ended
}

// disturbed tells whether a's hold may have ended unseen.
func (an *analysis) disturbed(a *acquisition) bool {
	return len(an.forcedEnds(a)) > 0 || an.wasPaused(a.Worker, a.grantedAt, a.releasingAt)
}

// A lockState is who holds the lock and how far its tokens are.
type lockState struct {
	holders []*acquisition // in the order of their IDs
	token   int64          // the greatest of an exclusive or leased holder
	node    string         // of the last such holder
	read    int64          // the greatest of a shared holder
}

func (l lockState) equal(other lockState) bool {
	return l.token == other.token && l.read == other.read && l.node == other.node &&
		slices.Equal(l.holders, other.holders)
}

// lockModel is a lock that grants an exclusive holder, or shared ones, or so many leases,
// each with a greater token.
func lockModel(leases int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			l, m := state.(lockState), input.(operation)
			at, holds := slices.BinarySearchFunc(
				l.holders, m.by.ID,
				func(a *acquisition, id ID) int { return a.compare(id) },
			)
			if m.releases {
				if holds {
					l.holders = slices.Delete(slices.Clone(l.holders), at, at+1)
				}
				return holds, l
			}
			if !l.admits(m.by, leases) {
				return false, l
			}
			l.holders = slices.Insert(slices.Clone(l.holders), at, m.by)
			if m.by.mode == Shared {
				l.read = max(l.read, m.by.token)
			} else {
				l.token, l.node = max(l.token, m.by.token), m.by.node
			}
			return true, l
		},
		Equal: func(a, b any) bool { return a.(lockState).equal(b.(lockState)) },
	}
}

func (m operation) String() string {
	if m.releases {
		return "takes back from " + m.by.String()
	}
	return "grants to " + m.by.String()
}

// admits tells whether a may hold the lock now, and with its token.
func (l lockState) admits(a *acquisition, leases int) bool {
	others := slices.DeleteFunc(slices.Clone(l.holders), func(b *acquisition) bool {
		return a.sameOwner(b) && a.under
	})
	exclusive := func(b *acquisition) bool { return b.mode == Exclusive }
	grown := a.token > l.token
	switch a.mode {
	case Exclusive:
		kept := a.cached && a.node == l.node && a.token == l.token
		return len(others) == 0 && (grown || kept) && a.token > l.read
	case Shared:
		// Under its owner's write lock it has the token of that; the write lock may be
		// lost by then, but not to another writer.
		return !slices.ContainsFunc(others, exclusive) &&
			(grown || a.under && a.token == l.token)
	case Leased:
		together := func(b *acquisition) bool {
			return b.Worker == a.Worker && b.Owner == a.Owner && b.Step == a.Step
		}
		return len(others) < leases && (grown || slices.ContainsFunc(others, together))
	}
	return false
}
