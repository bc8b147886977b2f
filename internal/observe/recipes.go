package observe

import (
	"slices"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// What the recipes call their znodes, as Curator does.
const (
	MutexName = "lock-"
	ReadName  = "__READ__"
	WriteName = "__WRIT__"
	LeaseName = "lease-"
	LatchName = "latch-"
)

// KazooName is what the locks of kazoo call their znodes, and its writers.
const KazooName = "__lock__"

// The directories of a semaphore: for its leases, and for those that wait at its gate.
const (
	LeasesDir = "leases"
	GateDir   = "locks"
)

// Names returns the names of all znodes that are known to stand in the queue of a
// directory: in that of a lock, "", or in one of a semaphore's.
func Names(dir string) []string {
	switch dir {
	case LeasesDir:
		return []string{LeaseName}
	case GateDir:
		return []string{MutexName}
	}
	return []string{MutexName, ReadName, WriteName, LeaseName, LatchName, KazooName}
}

// KindOf says what a participant is by the name of its znode; "" where that is another
// library's.
func KindOf(name string) string {
	switch name {
	case MutexName:
		return "lock"
	case ReadName:
		return "read"
	case WriteName:
		return "write"
	case LeaseName:
		return "lease"
	case LatchName:
		return "latch"
	}
	return ""
}

// Excludes tells whether one participant has to go before another one, each by the rule
// of its own recipe.
func Excludes(ahead, self seqname.Name) bool {
	return excludes(ahead.Kind, self.Kind) && ahead.Seq != self.Seq
}

func excludes(ahead, self string) bool {
	switch {
	case self == LeaseName || ahead == LeaseName:
		return false
	case KindOf(self) == "" || KindOf(ahead) == "":
		return self != LatchName && ahead != LatchName
	case self == ReadName:
		return ahead == WriteName
	case self == WriteName:
		return ahead == WriteName || ahead == ReadName
	}
	return ahead == self
}

// A Lodger is a znode in a session.
type Lodger struct{ Session, Czxid int64 }

// Unheld returns which lease of a semaphore is not held: the one that the first at the
// gate has created while it waits for room; -1: none.
func Unheld(first Lodger, leases []Lodger) int {
	for i, lease := range slices.Backward(leases) {
		if lease.Session == first.Session && lease.Czxid > first.Czxid {
			return i
		}
	}
	return -1
}
