package zkconn

import (
	"context"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// Start runs f beside the caller. f may make any number of requests, and ends by itself.
func Start[T any](s *Conn, f func() (T, error)) *Pending[T] {
	p := newPending[T](s)
	p.run(f)
	return p
}

func newPending[T any](s *Conn) *Pending[T] {
	return &Pending[T]{s: s, done: make(chan struct{})}
}

func (p *Pending[T]) run(f func() (T, error)) {
	p.s.Retain()
	go func() {
		defer p.s.Release()
		defer close(p.done)
		p.value, p.err = f()
	}()
}

// Wait returns what f returned or, if ctx is done or the connection closed before that,
// why it did not wait.
func (p *Pending[T]) Wait(ctx context.Context) (T, error) {
	var none T
	select {
	case <-p.done: // an answer that is in wins over a ctx that is done
		return p.value, p.err
	default:
	}
	select {
	case <-p.done:
		return p.value, p.err
	case <-ctx.Done():
		return none, outcome.Cancelled(ctx)
	case <-p.s.closed:
		return none, outcome.ClosedError{}
	}
}

// Done is closed when the call has ended; Err is its error after that.
func (p *Pending[T]) Done() <-chan struct{} { return p.done }

// Err is documented at Done.
func (p *Pending[T]) Err() error { return p.err }

// Then runs f with what the call returns, once it does, beside the caller.
func (p *Pending[T]) Then(f func(T, error)) {
	Start(p.s, func() (struct{}, error) {
		<-p.done
		f(p.value, p.err)
		return struct{}{}, nil
	})
}

// Call is Start and Wait.
func Call[T any](ctx context.Context, s *Conn, f func() (T, error)) (T, error) {
	return Start(s, f).Wait(ctx)
}

// BeginCreate waits for a place among the creates under way, until EndCreate. Every
// waiter needs a create of its own, so without it as many goroutines as there are
// callers, who come and leave, would hang at a mute server.
func (s *Conn) BeginCreate(ctx context.Context) error {
	select {
	case s.creating <- struct{}{}:
		return nil
	case <-ctx.Done():
		return outcome.Cancelled(ctx)
	case <-s.closed:
		return outcome.ClosedError{}
	}
}

// EndCreate is documented at BeginCreate.
func (s *Conn) EndCreate() { <-s.creating }
