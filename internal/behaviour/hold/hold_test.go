package hold_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
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

// The error of a loss while the release waits for its answer differs from that of one
// that was known before.
func TestALossWithinTheRelease(t *testing.T) {
	const within = "while it was being released"
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		link := s.Cluster.Link("ours")
		err := recipes.Do(t.Context(), s.Lock, func(
			_ context.Context, hold *recipes.Hold,
		) error {
			link.Freeze()
			return hold.Err()
		})
		require.ErrorIs(t, err, recipes.ErrLockLost)
		require.ErrorContains(
			t, err, "recipes: release /lock: "+within+": the lock was lost: ",
		)
		link.Thaw()

		semaphore := locktest.NewSemaphore(t, s.Ours, "/semaphore", 1)
		lease, err := semaphore.Acquire(t.Context())
		require.NoError(t, err)
		link.Freeze()
		require.ErrorContains(t, lease.Release(t.Context()), within)
		link.Thaw()
		time.Sleep(time.Minute)

		for name, lose := range map[string]func(*recipes.Hold){
			"known before": func(hold *recipes.Hold) { s.Lose(t, hold) },
			"deleted, and not seen": func(hold *recipes.Hold) {
				require.NoError(t, s.Other.Delete(hold.Path(), -1))
			},
		} {
			err := recipes.Do(t.Context(), s.Lock, func(
				_ context.Context, hold *recipes.Hold,
			) error {
				lose(hold)
				return nil
			})
			require.ErrorIs(t, err, recipes.ErrLockLost, name)
			require.NotContains(t, err.Error(), within, name)
		}
	})
}

// A fencedStore returns an error for a write with a token lower than one that it has
// seen.
type fencedStore struct{ seen int64 }

func (s *fencedStore) write(token int64) error {
	if token < s.seen {
		return fmt.Errorf("token %d is lower than %d", token, s.seen)
	}
	s.seen = token
	return nil
}

// That Err is nil after the last write does not show that nobody else held the lock
// before it: if the servers ended the session, or somebody deleted the znode, others can
// be faster than what tells this process. The fencing token shows it, and so does Multi.
func TestAnotherIsGrantedWhileErrIsStillNil(t *testing.T) {
	for name, c := range map[string]struct {
		end func(*locktest.Bubble, *recipes.Hold) bool
		err error // of a transaction that is sent then
	}{
		"the servers end the session": {
			func(b *locktest.Bubble, _ *recipes.Hold) bool {
				return b.Cluster.ExpireSession(b.Ours.SessionID())
			}, zk.ErrConnectionClosed, // its outcome is unknown
		},
		"the znode is deleted": {
			func(b *locktest.Bubble, hold *recipes.Hold) bool {
				return b.Other.Delete(hold.Path(), -1) == nil
			}, recipes.ErrNodeDeleted,
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			ctx, others := locktest.Owner(t), locktest.Owner(t)
			require.NoError(t, b.Lock.Acquire(ctx))
			hold, store := b.Lock.Hold(ctx), &fencedStore{}
			require.NoError(t, store.write(hold.FencingToken()))
			heirs := b.Mutex(t, b.Other, "/lock")
			next := locktest.Start(func() error { return heirs.Acquire(others) })
			const latency = 300 * time.Millisecond
			b.Cluster.Link("ours").Delay(latency, latency)
			time.Sleep(time.Second)

			require.True(t, c.end(b, hold))
			require.NoError(t, <-next)
			require.NoError(t, store.write(heirs.Hold(others).FencingToken()))
			// Here it would write, in the belief that it holds the lock.
			require.EqualError(t, store.write(hold.FencingToken()), fmt.Sprintf(
				"token %d is lower than %d", hold.FencingToken(), store.seen))
			require.NoError(t, hold.Err(), "nobody has told it")
			_, err := hold.Multi(&zk.CreateRequest{
				Path: "/write", Acl: zk.WorldACL(zk.PermAll),
			})
			require.ErrorIs(t, err, c.err)
			_, _, err = b.Other.Get("/write")
			require.ErrorIs(t, err, zk.ErrNoNode)

			require.NoError(t, heirs.Hold(others).Err())
			require.ErrorIs(t, b.Lock.Release(ctx), recipes.ErrLockLost)
			require.NoError(t, heirs.Release(others))
		})
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		lock, ctx := p.Mutex(path), locktest.Owner(t)
		require.Nil(t, lock.Hold(ctx))
		require.Empty(t, lock.LockPath(ctx))
		require.False(t, lock.IsOwned(ctx))
		require.False(t, lock.IsAcquiredInThisProcess())

		require.NoError(t, lock.Acquire(ctx))
		hold := lock.Hold(ctx)
		require.Equal(t, lock.LockPath(ctx), hold.Path())
		require.Equal(
			t, []string{strings.TrimPrefix(hold.Path(), path+"/")}, p.Children(path),
		)
		const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
		require.Regexp(t, path+`/_c_`+uuid+`-lock-0000000000$`, hold.Path())
		require.Nil(t, lock.Hold(locktest.Owner(t)), "another owner's")
		require.True(t, lock.IsAcquiredInThisProcess())
		_, stat, err := p.Conn.Get(hold.Path())
		require.NoError(t, err)
		require.Equal(t, p.Conn.SessionID(), stat.EphemeralOwner)
		require.GreaterOrEqual(t, hold.FencingToken(), stat.Czxid)

		require.NoError(t, lock.Acquire(ctx))
		again := lock.Hold(ctx)
		require.NotSame(t, hold, again, "a re-entry has a hold of its own")
		require.Equal(t, hold.Path(), again.Path())
		require.NoError(t, lock.Release(ctx))
		require.Same(t, hold, lock.Hold(ctx))
		require.NoError(t, lock.Release(ctx))
		select {
		case <-hold.Lost():
			t.Fatal("a normal release closed Lost")
		default:
		}
		require.NoError(t, hold.Err())
		require.Nil(t, lock.Hold(ctx))
	})
}

// Hold.Context ends with the hold, its release, and its parent.
func TestHoldContext(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, s *locktest.Bubble) {
		owner := locktest.Owner(t)
		require.NoError(t, s.Lock.Acquire(owner))
		hold := s.Lock.Hold(owner)
		parent, end := context.WithCancelCause(t.Context())
		child := hold.Context(parent)
		require.NoError(t, child.Err())
		end(locktest.ErrChangedMind)
		require.ErrorIs(t, context.Cause(child), locktest.ErrChangedMind)

		ctx := hold.Context(t.Context())
		s.Lose(t, hold)
		<-ctx.Done()
		require.Equal(t, hold.Err(), context.Cause(ctx))
		require.Equal(
			t, hold.Err(), context.Cause(hold.Context(t.Context())),
			"of a hold that is lost it is done at once",
		)
		require.ErrorIs(t, s.Lock.Release(owner), recipes.ErrLockLost)
	})
}

// A ctx of Hold.Context ends with the release of that hold, before the znode is deleted,
// and not with that of another acquisition of the same owner.
func TestHoldContextEndsWithTheRelease(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock := k.MustMake(t, b.Ours, "/lock")
		hold, err := recipes.Acquire(t.Context(), lock)
		require.NoError(t, err)
		within := hold.Context(t.Context())
		if k.IsReentrant() {
			inner, err := recipes.Acquire(within, lock)
			require.NoError(t, err)
			innermost := inner.Context(within)
			require.NoError(t, inner.Release(t.Context()))
			require.ErrorIs(t, context.Cause(innermost), recipes.ErrNotOwner)
			require.ErrorIs(
				t, context.Cause(inner.Context(within)), recipes.ErrNotOwner,
				"of a hold that was released it is done at once",
			)
			require.NoError(t, within.Err())
		}
		require.NoError(t, hold.Release(t.Context()))
		require.ErrorIs(t, context.Cause(within), recipes.ErrNotOwner)
		select {
		case <-hold.Lost():
			require.Fail(t, "a release is no loss")
		default:
		}
		require.NoError(t, hold.Err())
	})
}

// The token must lie below the czxid of whoever joins later, although it may be the
// parent's pzxid: also where somebody joined, or left, between our create and our list.
func TestTokenWhenSomebodySlippedIn(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		path := zkserver.Path(t)
		p, other := locktest.SharedPeer(t), locktest.SharedPeer(t)
		_, err := other.Conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		created := p.Tap.NthReply(wiretap.Create, 1, wiretap.Pass)
		var node string
		var once sync.Once
		p.Tap.OnRequest(func(request wiretap.Packet) wiretap.Verdict {
			if request.Op == wiretap.GetChildren2 {
				once.Do(func() {
					<-created
					node, err = other.Conn.CreateProtectedEphemeralSequential(
						path+"/lock-", nil, zk.WorldACL(zk.PermAll),
					)
				})
			}
			return wiretap.Pass
		})
		lock, ctx := p.Mutex(path), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, err)
		_, mine, err := p.Conn.Get(lock.LockPath(ctx))
		require.NoError(t, err)
		_, theirs, err := p.Conn.Get(node)
		require.NoError(t, err)
		require.Less(t, mine.Czxid, theirs.Czxid)
		require.Equal(t, mine.Czxid, lock.Hold(ctx).FencingToken())
		require.NoError(t, lock.Release(ctx))
	})
}

func TestCheckGuardsAMulti(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		lock, ctx := p.Mutex(path), locktest.Owner(t)
		count := locktest.NewCounter(t, p)
		set := &zk.SetDataRequest{
			Path: count.Path, Data: binary.BigEndian.AppendUint64(nil, 7), Version: -1,
		}
		require.NoError(t, lock.Acquire(ctx))
		hold := lock.Hold(ctx)
		_, err := p.Conn.Multi(hold.CheckOp(), set)
		require.NoError(t, err)
		require.NoError(t, lock.Release(ctx))
		set.Data = binary.BigEndian.AppendUint64(nil, 8)
		_, err = p.Conn.Multi(hold.CheckOp(), set)
		require.ErrorIs(t, err, zk.ErrNoNode)
		n, err := count.Value(p.Conn)
		require.NoError(t, err)
		require.EqualValues(t, 7, n)
	})
}
