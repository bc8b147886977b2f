package registration

import (
	"sync"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A name is a path, as one connection has it.
type name struct {
	conn *zkconn.Conn
	path string
}

// names are those that a Keeper has, or is about to have, each with a channel that is
// closed when it is given back: of two Keepers for one path through one connection, whose
// znodes would be of one session, the second one waits.
var names sync.Map

// take takes a name. Where another Keeper has it, it returns what is closed when that one
// gives it back.
func (n name) take() (other <-chan struct{}) {
	if held, ok := names.LoadOrStore(n, make(chan struct{})); ok {
		return held.(chan struct{})
	}
	return nil
}

// giveBack is called by the one that took it.
func (n name) giveBack() {
	held, _ := names.LoadAndDelete(n)
	close(held.(chan struct{}))
}
