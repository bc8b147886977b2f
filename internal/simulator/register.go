package simulator

import "sync"

// A Register is a store that the locks protect, as the fencing tokens want it to be: for
// each path it refuses a token that is lower than one it has seen. It is safe for
// concurrent use.
type Register interface {
	// Write is what an exclusive holder does. version counts the writes to the path that
	// were accepted.
	Write(path string, token int64) (version int64, accepted bool)
	// Read is what a shared holder does. It raises nothing.
	Read(path string, token int64) (accepted bool)
}

// NewRegister returns a Register in memory.
func NewRegister() Register { return &register{cells: map[string]*cell{}} }

type register struct {
	mu    sync.Mutex // guards cells and what they point to
	cells map[string]*cell
}

type cell struct {
	token   int64 // the greatest that was written with
	version int64
}

func (r *register) Write(path string, token int64) (version int64, accepted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cellLocked(path)
	if token < c.token {
		return 0, false
	}
	c.token = token
	c.version++
	return c.version, true
}

func (r *register) Read(path string, token int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return token >= r.cellLocked(path).token
}

func (r *register) cellLocked(path string) *cell {
	c := r.cells[path]
	if c == nil {
		c = &cell{}
		r.cells[path] = c
	}
	return c
}
