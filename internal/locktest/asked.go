package locktest

import "testing"

// Asked counts the calls of a listener.
type Asked chan struct{}

// NewAsked returns one that has counted none.
func NewAsked() Asked { return make(Asked, 100) }

// Listen is for MakeRevocable of a lock.
func (a Asked) Listen() { a <- struct{}{} }

// Count is how many calls [Asked.Once] has not waited for.
func (a Asked) Count() int { return len(a) }

// Once waits for a call.
func (a Asked) Once(t *testing.T) {
	t.Helper()
	Within(t, a, "the listener is called")
}
