package queues

import (
	"math"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// Container is the owner of a container znode, as the servers tell it.
const Container = math.MinInt64

// Owned tells whether a znode lives in a session.
func Owned(stat *zk.Stat) bool {
	return stat.EphemeralOwner != 0 && stat.EphemeralOwner != Container
}

// IsSemaphore tells by what is in a directory whether it is a semaphore's.
func IsSemaphore(children []string) bool {
	return slices.Contains(children, observe.LeasesDir) &&
		slices.Contains(children, observe.GateDir)
}

// IsLock tells by what is in a directory whether it is a lock's.
func IsLock(children []string) bool {
	return IsSemaphore(children) || len(Queued("", children)) > 0
}

// LockAt is the path of the lock of a directory by what is in it; "" if it is none's. A
// semaphore whose gate nobody passes may have its leases alone: a server deletes an empty
// container.
func LockAt(dir string, children []string) string {
	parent := zkpath.Parent(dir)
	switch {
	case dir == "/" || !IsLock(children):
		return ""
	case parent != "/" && strings.HasSuffix(dir, "/"+observe.LeasesDir) &&
		len(Queued(observe.LeasesDir, children)) > 0:
		return parent
	}
	return dir
}

// In is what Inspect takes for a queue in the directory of a lock, "", and in those of a
// semaphore. The znodes in one are ephemeral, and have no children.
func In(sub string) observe.Queue { return observe.Queue{Kinds: observe.Names(sub)} }

// MarkName is the znode below a KEY of "zklock once" that says when CMD ran last. It
// keeps KEY, too, which the servers would delete if it were empty.
const MarkName = "once"

// Queued returns those children of a directory that stand in its queue, in order.
func Queued(sub string, children []string) []string {
	members := In(sub).Among(children)
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Text
	}
	return names
}

// Stands tells by the name of a znode.
func Stands(name string) bool { return len(Queued("", []string{name})) > 0 }

// ordered are the names of the znodes whose order a recipe relies on, those of one recipe
// together. Leases have none.
func ordered(sub string) [][]string {
	switch sub {
	case observe.LeasesDir:
		return nil
	case observe.GateDir:
		return [][]string{{observe.MutexName}}
	}
	return [][]string{
		{observe.MutexName, observe.KazooName},
		{observe.ReadName, observe.WriteName, observe.KazooName},
		{observe.LatchName},
	}
}

// Below are the children that locks can be in or below, in order.
func Below(path string, children []string) []string {
	semaphore := IsSemaphore(children)
	standing := map[string]bool{}
	for _, child := range Queued("", children) {
		standing[child] = true
	}
	others := slices.DeleteFunc(slices.Clone(children), func(child string) bool {
		inside := semaphore && (child == observe.LeasesDir || child == observe.GateDir)
		system := path == "/" && child == "zookeeper"
		return inside || system || standing[child]
	})
	slices.Sort(others)
	return others
}

// Apart returns pairs of znodes in a queue whose numbers are so far apart that the
// library refuses the queue: the first and the last of a recipe, each pair once.
func Apart(sub string, children []string) (pairs [][2]string) {
	for _, kinds := range ordered(sub) {
		first, last, apart := seqname.Apart(seqname.Participants(children, kinds))
		two := [2]string{first.Text, last.Text}
		if apart && !slices.Contains(pairs, two) {
			pairs = append(pairs, two)
		}
	}
	return pairs
}

// CounterLimit is the last number that a directory can give.
const CounterLimit = math.MaxInt32

// Counter tells how many znodes a directory has numbered, and whether its counter is near
// the end. A server counts creates, and shows the sum of creates and deletes
// (DataNode.copyStat).
func Counter(stat *zk.Stat) (at uint32, near bool) {
	at = (uint32(stat.Cversion) + uint32(stat.NumChildren)) / 2
	return at, at > CounterLimit/10*9
}

// LockOf is the path of a lock by one of its directories.
func LockOf(dir string) string {
	if name := dir[strings.LastIndex(dir, "/")+1:]; name == observe.LeasesDir ||
		name == observe.GateDir {
		return zkpath.Parent(dir)
	}
	return dir
}
