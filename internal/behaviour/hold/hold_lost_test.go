package hold_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// lastWord keeps when the last request was sent whose answer a client has got, pings
// among them.
type lastWord struct {
	mu sync.Mutex
	at time.Time
}

func (w *lastWord) hear(request, _ wiretap.Packet) wiretap.Verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	if request.At.After(w.at) {
		w.at = request.At
	}
	return wiretap.Pass
}

func (w *lastWord) sentAt() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// An heir waits for a lock that another process holds.
type heir struct {
	lock    *recipes.InterProcessMutex
	ctx     context.Context
	granted <-chan grant
}

// A grant is what an heir found when it got the lock.
type grant struct {
	at       time.Time
	err      error
	previous error // the previous holder's Hold.Err at that moment
}

// succeed makes p wait for the lock at path that hold has. It returns once it stands in
// the queue.
func succeed(t *testing.T, p *locktest.Peer, path string, hold *recipes.Hold) *heir {
	t.Helper()
	granted := make(chan grant, 1)
	h := &heir{lock: p.Mutex(path), ctx: locktest.Owner(t), granted: granted}
	go func() {
		err := h.lock.Acquire(h.ctx)
		granted <- grant{time.Now(), err, hold.Err()}
	}()
	p.AwaitChildren(path, 2)
	return h
}

// inherits checks that h got the lock, and after the holder was told of the loss.
func (h *heir) inherits(t *testing.T, hold *recipes.Hold) grant {
	t.Helper()
	g := locktest.Within(t, h.granted, "the lock does not pass on")
	require.NoError(t, g.err)
	require.ErrorIs(
		t, g.previous, recipes.ErrLockLost,
		"two hold the lock, and the first does not know",
	)
	require.Greater(t, h.lock.Hold(h.ctx).FencingToken(), hold.FencingToken())
	return g
}

// An outcast is a holder that loses touch with the server.
type outcast struct {
	peer *locktest.Peer
	word *lastWord
	lock *recipes.InterProcessMutex
	ctx  context.Context
	hold *recipes.Hold
	heir *heir
	lost chan time.Time
}

func newOutcast(
	t *testing.T, servers string, timeout time.Duration, other *locktest.Peer,
) *outcast {
	t.Helper()
	o := &outcast{
		peer: locktest.NewPeer(t, servers, timeout), word: &lastWord{},
		ctx: locktest.Owner(t), lost: make(chan time.Time, 1),
	}
	o.peer.Tap.OnReply(o.word.hear)
	path := zkserver.Path(t)
	o.lock = o.peer.Mutex(path)
	require.NoError(t, o.lock.Acquire(o.ctx))
	o.hold = o.lock.Hold(o.ctx)
	o.heir = succeed(t, other, path, o.hold)
	go func() {
		<-o.hold.Lost()
		o.lost <- time.Now()
	}()
	return o
}

// CURATOR-460 among them: the client notices the silence after two thirds of the session
// timeout, and whoever counts from there is told of the loss when another holds the lock
// already.
func TestLostBeforeAnotherHoldsTheLock(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		const timeout, rounds = 4 * time.Second, 4
		servers := zkserver.Shared(t).Connect()
		other := locktest.NewPeer(t, servers, time.Minute)
		faults := map[string]func(*wiretap.Tap){
			"both ways":   (*wiretap.Tap).Partition,
			"to server":   (*wiretap.Tap).PartitionOut,
			"from server": (*wiretap.Tap).PartitionIn,
		}
		outcasts := map[string][]*outcast{}
		for name := range faults {
			for range rounds {
				outcasts[name] = append(
					outcasts[name], newOutcast(t, servers, timeout, other),
				)
			}
		}
		for round := range rounds {
			for name, fault := range faults {
				fault(outcasts[name][round].peer.Tap)
			}
			// so that the silences begin at different times after a heartbeat
			time.Sleep(timeout / 10 / rounds)
		}
		for name := range faults {
			for _, o := range outcasts[name] {
				granted := o.heir.inherits(t, o.hold)
				lost := locktest.Within(t, o.lost, name+": not told")
				// In the same instant of virtual time where the lost znode is deleted.
				require.False(
					t, lost.After(granted.at), "%s: told %v late", name,
					lost.Sub(granted.at),
				)
				require.Less(
					t, lost.Sub(o.word.sentAt()), timeout,
					"%s: the server might have ended the session by then", name,
				)
				require.ErrorIs(t, o.lock.Release(o.ctx), recipes.ErrLockLost)
				require.NoError(t, o.heir.lock.Release(o.heir.ctx))
				o.peer.Tap.Heal()
			}
		}
		for name := range faults {
			for _, o := range outcasts[name] {
				require.NoError(t, o.lock.Acquire(o.ctx), "the owner comes back")
				require.Greater(t, o.lock.Hold(o.ctx).FencingToken(),
					o.hold.FencingToken())
				require.NoError(t, o.lock.Release(o.ctx))
			}
		}
	})
}

// One holder's session is much longer than the server is away, the other's is not; what
// becomes of the latter at the server is open, since a server that comes back gives every
// session its time anew.
func TestLostWhenTheServerIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leave, comeBack func(*zkserver.Server) error
	}{
		"frozen": {(*zkserver.Server).Freeze, (*zkserver.Server).Thaw},
		"killed": {(*zkserver.Server).Kill, (*zkserver.Server).Restart},
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			if name == "killed" {
				zkserver.Resuming(t)
			}
			service := zkserver.Start(t)
			other := locktest.NewPeer(t, service.Connect(), time.Minute)
			lasting := locktest.NewPeer(t, service.Connect(), time.Minute)
			brief := newOutcast(t, service.Connect(), 2*time.Second, other)
			path, ctx := zkserver.Path(t), locktest.Owner(t)
			lock := lasting.Mutex(path)
			require.NoError(t, lock.Acquire(ctx))
			hold, session := lock.Hold(ctx), lasting.Conn.SessionID()

			require.NoError(t, c.leave(service.Servers[0]))
			lost := locktest.Within(t, brief.lost, "not told")
			require.Less(t, lost.Sub(brief.word.sentAt()), brief.peer.Timeout)
			require.Empty(t, brief.heir.granted)
			require.NoError(t, hold.Err())
			require.NoError(t, c.comeBack(service.Servers[0]))

			brief.heir.inherits(t, brief.hold)
			require.ErrorIs(t, brief.lock.Release(brief.ctx), recipes.ErrLockLost)
			lasting.AwaitSession()
			require.Equal(t, session, lasting.Conn.SessionID())
			require.NoError(t, hold.Err())
			require.Equal(t, path+"/"+lasting.AwaitChildren(path, 1)[0], hold.Path())
			require.NoError(t, lock.Release(ctx))
		})
	}
}

func TestNotLostWithinTheSession(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		zkserver.Resuming(t)
		const timeout = 6 * time.Second
		servers := zkserver.Shared(t).Connect()
		p := locktest.NewPeer(t, servers, timeout)
		other := locktest.NewPeer(t, servers, time.Minute)
		path, ctx := zkserver.Path(t), locktest.Owner(t)
		lock := p.Mutex(path)
		require.NoError(t, lock.Acquire(ctx))
		hold, session := lock.Hold(ctx), p.Conn.SessionID()
		token := hold.FencingToken()
		next := succeed(t, other, path, hold)

		for range 2 {
			p.Tap.Reset()
			p.Tap.Cut()
			locktest.Eventually(
				t, func() bool { return p.Tap.Count(wiretap.Connect) > 0 },
				"no reconnect",
			)
			p.AwaitHeartbeat()
			require.NoError(t, hold.Err())
		}
		p.Tap.Partition()
		time.Sleep(timeout / 4) // of silence, which the client does not notice
		p.Tap.Heal()
		p.AwaitHeartbeat()

		require.NoError(t, hold.Err())
		require.True(t, lock.IsOwned(ctx))
		require.Equal(t, session, p.Conn.SessionID())
		require.Equal(t, token, lock.Hold(ctx).FencingToken())
		require.Empty(t, next.granted)
		require.NoError(t, lock.Release(ctx))
		g := locktest.Within(t, next.granted, "the lock does not pass on")
		require.NoError(t, g.err)
		require.NoError(t, g.previous, "a release is no loss")
		require.Greater(t, next.lock.Hold(next.ctx).FencingToken(), token)
	})
}

// The session lasts for a minute, so that nothing in this test is owed to its end.
func TestASurvivorOfALossBlocksNobody(t *testing.T) {
	t.Parallel()
	zkserver.Resuming(t)
	for name, c := range map[string]struct {
		opts        []recipes.Option
		leave, back func(*wiretap.Tap)
	}{
		"out of touch": {
			[]recipes.Option{recipes.WithSessionTimeout(time.Second)},
			(*wiretap.Tap).Partition, (*wiretap.Tap).Heal,
		},
		"out of touch, with an unknown session timeout": {
			nil,
			func(tap *wiretap.Tap) { tap.Refuse(true); tap.Cut() },
			func(tap *wiretap.Tap) { tap.Refuse(false) },
		},
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			servers := zkserver.Shared(t).Connect()
			p, other := locktest.NewPeer(
				t, servers, time.Minute,
			), locktest.NewPeer(t, servers, time.Minute)
			path, ctx := zkserver.Path(t), locktest.Owner(t)
			lock := locktest.NewMutex(t, p.Conn, path, c.opts...)
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Acquire(ctx))
			hold, session := lock.Hold(ctx), p.Conn.SessionID()
			next := succeed(t, other, path, hold)

			c.leave(p.Tap)
			locktest.Within(t, hold.Lost(), "not told")
			require.False(t, lock.IsOwned(ctx))
			require.False(t, lock.IsAcquiredInThisProcess())
			require.Same(t, hold, lock.Hold(ctx))
			require.Empty(t, lock.LockPath(ctx))
			require.ErrorIs(t, lock.Acquire(ctx), recipes.ErrLockLost)
			require.Len(t, other.Children(path), 2, "the znode lives with the session")
			require.Empty(t, next.granted)

			c.back(p.Tap)
			next.inherits(t, hold)
			require.Equal(t, session, p.Conn.SessionID())
			require.Equal(t, zk.StateHasSession, p.Conn.State())
			require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
			require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
			require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
			require.NoError(t, next.lock.Release(next.ctx))
			require.NoError(t, lock.Acquire(ctx))
			require.NoError(t, lock.Release(ctx))
		})
	}
}

func TestHeartbeatKeepsQuietHolds(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		const timeout, beats = 3 * time.Second, 8 // together longer than the session
		p := locktest.NewPeer(t, zkserver.Shared(t).Connect(), timeout)
		path, ctx := zkserver.Path(t), locktest.Owner(t)
		var holds []*recipes.Hold
		for _, name := range []string{"/a", "/b", "/c", "/d"} {
			lock := p.Mutex(path + name)
			require.NoError(t, lock.Acquire(ctx))
			holds = append(holds, lock.Hold(ctx))
		}
		locktest.Eventually(
			t, func() bool { return len(p.Watching()) == len(holds) },
			"the holds are not watched",
		)

		time.Sleep(timeout / 2) // the first ones come faster
		p.Tap.Reset()
		began := time.Now()
		locktest.Eventually(
			t, func() bool { return p.Tap.Count(wiretap.Sync) == beats }, "no heartbeats",
		)
		require.LessOrEqual(
			t, time.Duration(beats-1)*timeout/10, time.Since(began),
			"more than one every T/10 for all together",
		)
		for _, request := range p.Tap.Requests() {
			require.Equal(t, "sync /", request.String(), "nothing else is asked")
		}
		for _, hold := range holds {
			require.NoError(t, hold.Err())
		}
	})
}
