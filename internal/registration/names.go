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

// names are those that a Keeper has, or is about to have: of two Keepers for one path
// through one connection, whose znodes would be of one session, the second one waits.
var names = struct {
	mu   sync.Mutex
	held map[name]chan struct{} // closed when the name is given back
}{held: map[name]chan struct{}{}}

// take takes a name. Where another Keeper has it, it returns what is closed when that one
// gives it back.
func (n name) take() (other <-chan struct{}) {
	names.mu.Lock()
	defer names.mu.Unlock()
	if held := names.held[n]; held != nil {
		return held
	}
	names.held[n] = make(chan struct{})
	return nil
}

// giveBack is called by the one that took it.
func (n name) giveBack() {
	names.mu.Lock()
	defer names.mu.Unlock()
	close(names.held[n])
	delete(names.held, n)
}
