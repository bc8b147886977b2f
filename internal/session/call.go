package session

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// The client's calls take no ctx and can hang for ten times the session timeout. So each runs beside its caller, who
// leaves when ctx is done; what the call has done by then is undone by whoever follows it up.

// A Pending is a call under way.
type Pending[T any] struct {
	s     *Session
	done  chan struct{} // closed when value and err are set
	value T
	err   error
}

// Start runs f beside the caller. f may make any number of calls to ZooKeeper and ends by itself.
func Start[T any](s *Session, f func() (T, error)) *Pending[T] {
	p := newPending[T](s)
	p.run(f)
	return p
}

func newPending[T any](s *Session) *Pending[T] {
	return &Pending[T]{s: s, done: make(chan struct{})}
}

func (p *Pending[T]) run(f func() (T, error)) {
	p.s.Again()
	go func() {
		defer p.s.Done()
		defer close(p.done)
		p.value, p.err = f()
	}()
}

// Wait returns what f returned or, if ctx is done or the connection closed before that, why it did not wait.
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
		return none, context.Cause(ctx)
	case <-p.s.closed:
		return none, closedError{}
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

// Call runs f, one call to ZooKeeper, beside the caller and waits as Wait does.
func Call[T any](ctx context.Context, s *Session, f func() (T, error)) (T, error) {
	return Start(s, func() (value T, err error) {
		err = s.Observe(func() error {
			value, err = f()
			return err
		})
		return value, err
	}).Wait(ctx)
}

// Observe makes one call to ZooKeeper and takes note if the connection is lost. A write is a
// Contact, a sync is a Sync.
func (s *Session) Observe(call func() error) error {
	s.noteAsked()
	err := call()
	if Answered(err) {
		s.noteHeard()
	}
	s.noteOutcome(err)
	if errors.Is(err, zk.ErrClosing) {
		s.Fail()
	}
	return err
}

// Contact makes one write. What its leader has judged is what the clock runs on.
func (s *Session) Contact(call func() error) error {
	return s.contact(call, Judged)
}

// Sync makes one sync. Its leader has answered it if it succeeds; no error is known to be his.
func (s *Session) Sync(path string) error {
	return s.contact(func() error {
		_, err := s.Conn.Sync(path)
		return err
	}, func(err error) bool { return err == nil })
}

// contact makes one call in which the leader had a part where its outcome counts.
func (s *Session) contact(call func() error, counts func(error) bool) error {
	session, sent := s.Conn.SessionID(), time.Now()
	err := s.Observe(call)
	if counts(err) && session != 0 && s.Conn.SessionID() == session {
		s.noteContact(session, sent)
	}
	return err
}

const readyPoll = 20 * time.Millisecond

// Ready waits until the connection has a session.
func (s *Session) Ready(ctx context.Context) error {
	for s.Conn.State() != zk.StateHasSession || s.Conn.SessionID() == 0 {
		if err := s.Pause(ctx, readyPoll); err != nil {
			return err
		}
	}
	return s.Pause(ctx, 0)
}

// Pause waits for d, or until ctx is done or the connection closed, which it reports.
func (s *Session) Pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.isClosed() {
		return closedError{}
	}
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closed:
		return closedError{}
	}
}

// Retry runs f, once the connection has a session, until it succeeds or fails for good, ctx is done or the connection closed.
func (s *Session) Retry(ctx context.Context, f func() error) error {
	var backoff Backoff
	for {
		err := s.Ready(ctx)
		if err == nil {
			err = f()
		}
		if err == nil || Final(err) {
			return err
		}
		if err := s.Pause(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}

// A Backoff says how long to wait before the next try: not at all at first, then from 10 ms up to half a second.
type Backoff int

// Next returns the wait before the next try.
func (b *Backoff) Next() time.Duration {
	if *b++; *b == 1 {
		return 0
	}
	return min(5*time.Millisecond<<min(*b-1, 10), 500*time.Millisecond)
}
