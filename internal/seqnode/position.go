package seqnode

import (
	"fmt"

	"github.com/zkrecipes/recipes/internal/wait"
)

// A Position is where a waiter stands in the queue, as far as is known.
type Position struct {
	Ahead  int    // how many are ahead
	Behind string // the path of the one to wait for, "" if it is its turn
	// MayBeIdle: perhaps nobody uses that one, and nobody ahead is certain to hold the
	// lock or wait for it. Either it is a cached entry or a single attempt, and idle as
	// far as this process knows: then it leaves soon, since a znode has queued behind it.
	// Or no library has named it, and it may be no participant at all.
	MayBeIdle bool

	ownerless bool // that one belongs to no session

	ours bool // that one is of this process
	// it came through another value: it can be the same owner's
	elsewhere bool
}

// BehindOurs is the Position behind a znode of this process. It is unknown through which
// values its users came.
func BehindOurs(ahead int, path string) Position {
	return Position{Ahead: ahead, Behind: path, ours: true, elsewhere: true}
}

// Place is p as the end of a wait tells it.
func (p Position) Place() wait.Place {
	return wait.Place{Text: p.String(), Behind: p.Behind, Ahead: p.Ahead}
}

// String says who is ahead, "" if nobody is.
func (p Position) String() string {
	if p.Behind == "" {
		return ""
	}
	whose := ""
	switch {
	case p.ours && p.elsewhere:
		whose = ", of this process (it can be the waiter's own, through another value " +
			"of this path)"
	case p.ours:
		whose = ", of this process"
	}
	if p.ownerless {
		whose = ", which belongs to no session: nobody will remove it; delete it if no " +
			"lock created it"
	}
	return fmt.Sprintf("%d ahead, behind %s%s", p.Ahead, p.Behind, whose)
}
