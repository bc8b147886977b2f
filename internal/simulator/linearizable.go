package simulator

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// linearizeWithin bounds the search where Limits do not.
const linearizeWithin = 10 * time.Second

// A move is an operation on the lock of one path, as the model sees it: an acquisition takes the lock, or gives it back.
type move struct {
	by    *acquisition
	gives bool
}

// checkLinearizable demands that each path's acquisitions and releases can be put in an order in which a lock could have
// granted them, each between its call and its return. A search that takes too long is a failure: a lock's histories
// are nearly sequential, and such a one says that the history, or the model, is not what it should be.
func (s *study) checkLinearizable() error {
	within := s.limits.Linearize
	if within == 0 {
		within = linearizeWithin
	}
	for _, path := range s.paths {
		model, moves := lockModel(s.limits.Leases[path]), s.moves(path)
		switch result := porcupine.CheckOperationsTimeout(model, moves, within); result {
		case porcupine.Ok:
		case porcupine.Unknown:
			return s.violation("linearizability", path, never, "not decided within %v", within)
		default:
			m := stuckAt(model, moves, within)
			return s.violation("linearizability", path, m.by.grantedAt,
				"there is no order in which a lock could have done this, at the latest when it %s", m)
		}
	}
	return nil
}

// stuckAt returns the first operation that has no place behind the longest order that there is.
func stuckAt(model porcupine.Model, moves []porcupine.Operation, within time.Duration) move {
	_, info := porcupine.CheckOperationsVerbose(model, moves, within)
	placed := map[move]bool{}
	for _, order := range info.PartialLinearizationsOperations()[0] {
		if len(order) <= len(placed) {
			continue
		}
		clear(placed)
		for _, o := range order {
			placed[o.Input.(move)] = true
		}
	}
	rest := slices.DeleteFunc(slices.Clone(moves), func(o porcupine.Operation) bool { return placed[o.Input.(move)] })
	return slices.MinFunc(rest, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) }).Input.(move)
}

// moves returns the operations on a path. Their times are places in the history, so that no two are equal.
func (s *study) moves(path string) []porcupine.Operation {
	clients := map[[2]int]int{}
	var moves []porcupine.Operation
	end := int64(len(s.history))
	for _, a := range s.granted(path) {
		owner := [2]int{a.Worker, a.Owner}
		if _, known := clients[owner]; !known {
			clients[owner] = len(clients)
		}
		from, to := s.gaveBack(a, end)
		moves = append(moves,
			porcupine.Operation{ClientId: clients[owner], Input: move{by: a}, Call: 2 * int64(a.calledIn), Return: 2 * int64(a.grantedIn)},
			porcupine.Operation{ClientId: clients[owner], Input: move{by: a, gives: true}, Call: from, Return: to})
	}
	return moves
}

// gaveBack is between which times a hold has ended at the server. A lost one has at an unknown time before the loss was known.
func (s *study) gaveBack(a *acquisition, end int64) (from, to int64) {
	afterGrant, ended := 2*int64(a.grantedIn)+1, 2*end
	if s.grantedEarliest(a) < a.grantedAt {
		afterGrant = 2*int64(a.calledIn) + 1
	}
	_, removed := s.removed[a.node]
	switch {
	case a.lost && (!a.releasing || a.lostIn < a.releasingIn):
		return afterGrant, max(afterGrant, 2*int64(a.lostIn))
	case a.released && a.outcome == OK && !removed:
		return 2 * int64(a.releasingIn), 2 * int64(a.releasedIn)
	case a.released && (a.outcome == LockLost || a.outcome == OK):
		return afterGrant, 2 * int64(a.releasedIn)
	case a.releasing && !s.disturbed(a):
		return 2 * int64(a.releasingIn), ended
	}
	return afterGrant, ended
}

// disturbed tells whether a's hold may have ended unseen.
func (s *study) disturbed(a *acquisition) bool {
	return len(s.breaks(a)) > 0 || s.wasPaused(a.Worker, a.grantedAt, a.releasingAt)
}

// A lockState is who holds the lock and how far its tokens are.
type lockState struct {
	holders []*acquisition // in the order of their IDs
	token   int64          // the greatest of an exclusive or leased holder
	read    int64          // the greatest of a shared holder
}

func (l lockState) equal(other lockState) bool {
	return l.token == other.token && l.read == other.read && slices.Equal(l.holders, other.holders)
}

// lockModel is a lock that grants an exclusive holder, or shared ones, or so many leases, each with a greater token.
func lockModel(leases int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return lockState{} },
		Step: func(state, input, _ any) (bool, any) {
			l, m := state.(lockState), input.(move)
			at, holds := slices.BinarySearchFunc(l.holders, m.by.ID, func(a *acquisition, id ID) int { return a.compare(id) })
			if m.gives {
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
				l.token = max(l.token, m.by.token)
			}
			return true, l
		},
		Equal: func(a, b any) bool { return a.(lockState).equal(b.(lockState)) },
	}
}

func (m move) String() string {
	if m.gives {
		return "takes back from " + m.by.String()
	}
	return "grants to " + m.by.String()
}

// admits tells whether a may hold the lock now, and with its token.
func (l lockState) admits(a *acquisition, leases int) bool {
	others := slices.DeleteFunc(slices.Clone(l.holders), func(b *acquisition) bool { return a.sameOwner(b) && a.under })
	exclusive := func(b *acquisition) bool { return b.mode == Exclusive }
	grown := a.token > l.token
	switch a.mode {
	case Exclusive:
		return len(others) == 0 && a.token > max(l.token, l.read)
	case Shared:
		// Under the own write lock it has that one's token; the write lock may be lost by then, but not to another writer.
		return !slices.ContainsFunc(others, exclusive) && (grown || a.under && a.token == l.token)
	case Leased:
		together := func(b *acquisition) bool { return b.Worker == a.Worker && b.Owner == a.Owner && b.Step == a.Step }
		return len(others) < leases && (grown || slices.ContainsFunc(others, together))
	}
	return false
}
