package recipes

import (
	"context"
	"slices"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/session"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// Inspect returns the queue of whatever recipe uses path, in order, as of now at the
// leader; it is empty for a path that was never used. It takes a read for each
// participant; those who leave meanwhile are not in it. No lock value is needed.
//
// Of a semaphore it returns the leases ("lease"), then who stands at the gate for more
// ("lock", never Holding). Whoever is first there may have made leases that are not
// granted yet, for want of room. Inspect cannot see how many: if the youngest lease of
// its session is younger than its place at the gate, that one is taken for waiting, and
// all others for granted.
//
// Where recipes share a path, which they should not, each participant is judged among its
// own kind. A kazoo Lock is a "lock", and judged among mutexes, readers and writers (see
// WithNames).
func Inspect(ctx context.Context, conn Conn, path string) ([]Participant, error) {
	const op = "inspect"
	settings, err := build(conn, path, nil)
	if err == nil {
		err = notNil(ctx)
	}
	if err != nil {
		return nil, refuse(op, path, err)
	}
	s := session.Use(conn, settings.sessionConfig(conn))
	defer s.Release()
	own, err := inspectDir(ctx, s, path, inspected...)
	if err != nil {
		return nil, wrap(op, path, err)
	}
	leases, err := inspectDir(ctx, s, zkpath.Join(path, leasesDir), leaseName)
	if err != nil {
		return nil, wrap(op, path, err)
	}
	gate, err := inspectDir(ctx, s, zkpath.Join(path, locksDir), mutexName)
	if err != nil {
		return nil, wrap(op, path, err)
	}
	judgeSemaphore(gate, leases)
	return participantsOf(slices.Concat(own, leases, gate)), nil
}

// inspected are the names of all znodes that are known to stand in a queue.
var inspected = []string{
	mutexName, readName, writeName, leaseName, latchName, kazooName,
}

// inspectDir looks at the participants of the given kinds.
func inspectDir(
	ctx context.Context, s *session.Session, dir string, kinds ...string,
) ([]sight, error) {
	q := &seqnode.Queue{Dir: dir, Kinds: kinds}
	members, err := q.Members(ctx, s)
	if err != nil {
		return nil, err
	}
	return look(ctx, s, q, members, anyRule)
}

// anyRule judges each participant by the rule of its own recipe, among those of the
// recipe.
func anyRule(ahead []seqnode.Name, self seqnode.Name) (blocker int) {
	for at := len(ahead) - 1; at >= 0; at-- {
		other := ahead[at]
		if excludes(other.Kind, self.Kind) && other.Seq != self.Seq {
			return at
		}
	}
	return -1
}

// excludes tells by two names whether the first znode has to go before the second.
func excludes(ahead, self string) bool {
	switch {
	case self == leaseName || ahead == leaseName:
		return false
	case isForeign(self) || isForeign(ahead):
		return self != latchName && ahead != latchName
	case self == readName:
		return ahead == writeName
	case self == writeName:
		return ahead == writeName || ahead == readName
	}
	return ahead == self
}

// judgeSemaphore corrects what no rule of one directory tells.
func judgeSemaphore(gate, leases []sight) {
	for i := range gate {
		gate[i].Holding = false
	}
	if len(gate) == 0 {
		return
	}
	first := gate[0]
	for i, lease := range slices.Backward(leases) {
		if lease.Session == first.Session && lease.czxid > first.czxid {
			leases[i].Holding = false
			return
		}
	}
}
