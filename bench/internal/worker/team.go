package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/internal/wiretap"
)

// A team is those who carry out a load: their sessions, over one wire.
type team struct {
	load.Load
	peer    peer.Peer
	wire    *peer.Wire
	tap     *wiretap.Tap // in the wire, where watches are counted; else nil
	clients []peer.Client
}

// A user has locks of its own.
type user struct {
	ctx  context.Context
	lock peer.Lock
	read peer.Lock // where some of the acquisitions of a writer are to be a reader's
}

func newTeam(p peer.Peer, l load.Load) *team {
	return &team{Load: l, peer: p, wire: peer.NewWire(nil)}
}

// throughTap has all connections, which are with ZooKeeper, go through a tap.
func (t *team) throughTap() {
	t.tap = wiretap.New(nil)
	t.wire = peer.NewWire(t.tap.Dial)
}

// connect opens one session more.
func (t *team) connect(ctx context.Context) (peer.Client, error) {
	limited, cancel := context.WithTimeout(ctx, peer.SessionTimeout)
	defer cancel()
	c, err := t.peer.Open(limited, t.Load, t.wire)
	if err != nil {
		return nil, err
	}
	t.clients = append(t.clients, c)
	return c, nil
}

// path is that of the nth lock.
func (t *team) path(n int) string {
	if t.Paths < 2 {
		return t.Path
	}
	return fmt.Sprintf("%s-%d", t.Path, n%t.Paths)
}

// user makes a user of the nth lock.
func (t *team) user(ctx context.Context, c peer.Client, n int) (u user, err error) {
	u.ctx = c.User(ctx)
	if u.lock, err = c.Lock(t.path(n), t.Kind); err != nil {
		return u, err
	}
	if t.Reads > 0 {
		u.read, err = c.Lock(t.path(n), load.Read)
	}
	return u, err
}

// users opens the load's sessions and makes n users, who are dealt out to them in turn.
func (t *team) users(ctx context.Context, n int) ([]user, error) {
	var sessions []peer.Client
	for range t.Sessions {
		c, err := t.connect(ctx)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, c)
	}
	users := make([]user, n)
	for i := range users {
		var err error
		if users[i], err = t.user(ctx, sessions[i%len(sessions)], i); err != nil {
			return nil, err
		}
	}
	return users, nil
}

// holder is a user with a session of its own, who holds the lock.
func (t *team) holder(ctx context.Context) (user, error) {
	c, err := t.connect(ctx)
	if err != nil {
		return user{}, err
	}
	u, err := t.user(ctx, c, 0)
	if err != nil {
		return u, err
	}
	return u, u.lock.Acquire(u.ctx)
}

// awaitQueue returns once n users hold the lock or wait for it. Where the service does
// not know all of them, since a process has one place in the queue or none at all, it is
// when nobody has come for a while.
func (t *team) awaitQueue(ctx context.Context, n int, quiet time.Duration) error {
	counter, counts := t.clients[len(t.clients)-1].(peer.Counter)
	if !counts {
		return sleep(ctx, quiet)
	}
	var seen int
	for since := time.Now(); time.Since(since) < quiet; {
		now, err := counter.Users(ctx, t.Path)
		if err != nil {
			return err
		}
		if now >= n {
			break
		}
		if now != seen {
			seen, since = now, time.Now()
		}
		if err := sleep(ctx, t.Settle/2); err != nil {
			return err
		}
	}
	return sleep(ctx, t.Settle)
}

// awaitCrowd is awaitQueue for those who take long to come to rest: it returns once
// hardly anything goes over the wire. Of a service that does not know its users, which
// they go on asking, it does not expect that.
func (t *team) awaitCrowd(ctx context.Context, n int) error {
	const (
		pause, few = 200 * time.Millisecond, 10_000 // bytes
		most       = 100                            // pauses
	)
	if err := t.awaitQueue(ctx, n, time.Second); err != nil {
		return err
	}
	if _, counts := t.clients[0].(peer.Counter); !counts {
		return nil
	}
	for range most {
		_, before := t.wire.Counted()
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		if _, after := t.wire.Counted(); after-before < few {
			break
		}
	}
	return nil
}

// close ends all sessions; a second call does nothing.
func (t *team) close() error {
	var errs []error
	for _, c := range t.clients {
		errs = append(errs, c.Close())
	}
	t.clients = nil
	return errors.Join(errs...)
}

// sleep returns early, with its cause, when ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
