package calls

import (
	"context"
	"errors"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// An Owner is the connection of a call.
type Owner interface {
	// Retain counts one user more of the connection, Release one less.
	Retain()
	Release()
	// Closed is closed once the connection is known to be closed by its owner.
	Closed() <-chan struct{}
}

// A Pending is a call under way. The client's calls take no ctx and can hang for ten
// times the session timeout. So each runs concurrently with its caller, who leaves when
// ctx is done, and may undo by Then what the call does after that.
type Pending[T any] struct {
	closed <-chan struct{} // see Owner

	// Set by the goroutine of the call, before done is closed.
	value T
	err   error

	done chan struct{} // closed by the goroutine of the call, when it ends
}

// Start runs f concurrently with the caller. f may make any number of requests, and must
// end by itself.
func Start[T any](of Owner, f func() (T, error)) *Pending[T] {
	p := New[T](of)
	p.Run(of, f)
	return p
}

// New returns a call that has not begun: Run begins it.
func New[T any](of Owner) *Pending[T] {
	return &Pending[T]{closed: of.Closed(), done: make(chan struct{})}
}

// Run begins a call of New, as Start does. It is called once.
func (p *Pending[T]) Run(of Owner, f func() (T, error)) {
	of.Retain()
	go func() {
		defer of.Release()
		defer close(p.done)
		p.err = errNoReturn // stays if f ends the goroutine
		p.value, p.err = f()
	}()
}

// errNoReturn is the error of a call whose function has ended its goroutine, as a Conn of
// the user's may.
var errNoReturn = outcome.Permanent(
	errors.New("the call ended its goroutine (runtime.Goexit)"))

// Wait returns what f returned or, if ctx is done or the connection closed before that,
// why it did not wait.
func (p *Pending[T]) Wait(ctx context.Context) (T, error) {
	var none T
	select {
	case <-p.done: // an answer that has arrived wins over a ctx that is done
		return p.value, p.err
	default:
	}
	select {
	case <-p.done:
		return p.value, p.err
	case <-ctx.Done():
		return none, outcome.Cancelled(ctx)
	case <-p.closed:
		return none, outcome.ClosedError{}
	}
}

// Done is closed when the call has ended; Err is its error after that.
func (p *Pending[T]) Done() <-chan struct{} { return p.done }

// Err is documented at Done.
func (p *Pending[T]) Err() error { return p.err }

// Ended reports whether the call has ended.
func (p *Pending[T]) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Then runs f with what the call returns, once it does, concurrently with the caller.
func (p *Pending[T]) Then(of Owner, f func(T, error)) {
	Start(of, func() (struct{}, error) {
		<-p.done
		f(p.value, p.err)
		return struct{}{}, nil
	})
}

// Call is Start and Wait.
func Call[T any](ctx context.Context, of Owner, f func() (T, error)) (T, error) {
	return Start(of, f).Wait(ctx)
}
