package zkconn

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// Retry runs f, each time once the connection has a session, until it succeeds or fails
// for good (see Final), ctx is done or the connection closed. f may itself wait for
// something: then it is what makes the wait outlast an outage.
func (s *Conn) Retry(ctx context.Context, f func() error) error {
	var backoff Backoff
	for {
		err := s.ready(ctx)
		if err == nil {
			err = f()
		}
		if err == nil || outcome.Final(err) {
			return err
		}
		if err := s.Pause(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}

// What was refused is tried again after a second at first, then less and less often.
const (
	insistSoon   = time.Second
	insistAtMost = 30 * time.Second
)

// Insist goes on with f after a refusal, of an f that is an obligation and no call: it
// lasts until f succeeds, or fails with an error that is no refusal, as once the session
// has ended, or the connection is closed. The rights that were lacking may come back at
// any time, and at a reconnect with another login.
func (s *Conn) Insist(f func() error) error {
	reconnected := s.Reconnected()
	for pause := insistSoon; ; pause = min(2*pause, insistAtMost) {
		if err := s.pauseUntil(reconnected, pause); err != nil {
			return err
		}
		reconnected = s.Reconnected()
		err := s.Retry(context.Background(), f)
		if !outcome.Refused(err) {
			return err
		}
	}
}

// pauseUntil waits for d, or until done is closed, and reports a closed connection.
func (s *Conn) pauseUntil(done <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
	case <-s.closed:
		return outcome.ClosedError{}
	}
	return nil
}

const readyPoll = 20 * time.Millisecond

// ready waits until the connection has a session. A request that is made while there is
// none hangs, or fails at once and is tried in vain; and the client would run it in the
// next session, in which it means something else.
func (s *Conn) ready(ctx context.Context) error {
	for s.conn.State() != zk.StateHasSession || s.conn.SessionID() == 0 {
		if err := s.Pause(ctx, readyPoll); err != nil {
			return err
		}
	}
	return s.Pause(ctx, 0)
}

// Pause waits for d, or until ctx is done or the connection closed, which it reports,
// also where d is 0.
func (s *Conn) Pause(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return outcome.Cancelled(ctx)
	}
	if s.isClosed() {
		return outcome.ClosedError{}
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
		return outcome.Cancelled(ctx)
	case <-s.closed:
		return outcome.ClosedError{}
	}
}

// A Backoff says how long to wait before the next try: not at all at first, since what
// fails a request is mostly the loss of its connection, which Retry waits out; then from
// 10 ms up to half a second.
type Backoff int

// Next returns the wait before the next try.
func (b *Backoff) Next() time.Duration {
	if *b++; *b == 1 {
		return 0
	}
	return min(5*time.Millisecond<<min(*b-1, 10), 500*time.Millisecond)
}
