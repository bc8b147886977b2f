package recipes

import (
	"slices"

	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// lookout warns, once, of another recipe's znodes at the path of a lock: recipes that do
// not see each other's znodes do not exclude each other.
func (s *settings) lookout(recipe, path string) *seqnode.Lookout {
	log := s.logger
	return &seqnode.Lookout{Find: findForeign, Tell: func(dir, found string) {
		other, advice := recipeOf(found), "give each recipe a path of its own"
		if other == kazooLock {
			advice = "count them by WithNames, or " + advice
		}
		log.Warn("zookeeper lock: another recipe uses this path, "+
			"and the two do not exclude each other", "path", path, "recipe", recipe,
			"other", other, "node", zkpath.Join(dir, found), "advice", advice)
	}}
}

const kazooLock = "kazoo lock"

// recipeOf is the recipe that has such a znode, "" where none has.
func recipeOf(child string) string {
	switch {
	case seqnode.IsMember(child, mutexName):
		return "mutex or leader selector"
	case seqnode.IsMember(child, readName, writeName):
		return "read/write lock"
	case seqnode.IsMember(child, latchName):
		return "leader latch"
	case seqnode.IsMember(child, leaseName), child == leasesDir:
		return "semaphore"
	case seqnode.IsMember(child, kazooName):
		return kazooLock
	}
	return ""
}

// findForeign returns one of children that another recipe uses than the one whose znodes
// have the names of kinds, "" where there is none.
func findForeign(children, kinds []string) string {
	isForeign := func(child string) bool {
		return child != leasesDir && recipeOf(child) != "" &&
			!seqnode.IsMember(child, kinds...)
	}
	if at := slices.IndexFunc(children, isForeign); at >= 0 {
		return children[at]
	}
	// One of the two alone may be anything.
	if slices.Contains(children, leasesDir) && slices.Contains(children, locksDir) {
		return leasesDir
	}
	return ""
}
