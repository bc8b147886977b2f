package hazards_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// put creates a znode in the lock's directory, in the other process's session.
func (s *scene) put(t *testing.T, name string, flags int32) (path string) {
	t.Helper()
	path, err := s.other.Conn.Create(s.path+"/"+name, nil, flags, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return path
}

// A child that is no participant stopped everybody if it sorted first (CURATOR-43), and
// made zk.Lock fail (A2).
func TestHazardA1_13_Strangers(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		for _, name := range []string{
			"000-config", "zzz-config", "_c_short", "_c_", "lock-", "lock-abc",
			"lock-12345",
			"lock-99999999999", "lock-9999999999",
			"lock-+000000001", "LOCK-0000000000", "0000000000", "__READ__0000000000",
			"lease-0000000000", "lock-0000000000-old",
		} {
			s.put(t, name, zk.FlagEphemeral)
		}
		leave := s.occupy(t)
		done := s.acquire()
		s.steps.Nth(t, recipes.EventQueued, 1)
		require.False(t, locktest.Try(t, s.other, s.path))
		leave()
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		nodes, err := s.lock.ParticipantNodes(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{s.lock.LockPath(s.ctx)}, nodes)
		participants, err := s.lock.Participants(t.Context())
		require.NoError(t, err)
		require.Len(t, participants, 1)
		require.True(t, participants[0].Holding)
		require.NoError(t, s.lock.Release(s.ctx))
	})
}

// A holder without protection, a bare lock-<seq>, is a participant like any other.
func TestHazardA1_13_UnprotectedHolder(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		holder := s.put(t, "lock-", zk.FlagEphemeral|zk.FlagSequence)
		require.False(t, locktest.Try(t, s.Peer, s.path))
		done := s.acquire()
		require.Equal(t, 1, s.steps.Nth(t, recipes.EventQueued, 1).Ahead)
		s.delete(t, holder)
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		s.holdsAlone(t)
	})
}

// go-zookeeper's own Lock and this one are the same lock.
func TestHazardA2_ExclusionWithZkLock(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		theirs := zk.NewLock(s.other.Conn, s.path, zk.WorldACL(zk.PermAll))
		require.NoError(t, theirs.Lock())
		require.False(t, locktest.Try(t, s.Peer, s.path))
		done := s.acquire()
		require.Equal(t, 1, s.steps.Nth(t, recipes.EventQueued, 1).Ahead)
		require.NoError(t, theirs.Unlock())
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))

		s.other.Tap.Reset()
		locked := locktest.Start(theirs.Lock)
		locktest.Eventually(
			t, func() bool { return s.other.Tap.Count(wiretap.GetData) > 0 },
			"zk.Lock does not wait",
		)
		select {
		case err := <-locked:
			t.Fatalf("zk.Lock has it, too: %v", err)
		default:
		}
		require.NoError(t, s.lock.Release(s.ctx))
		require.NoError(t, locktest.Within(t, locked, "zk.Lock does not get the lock"))
		require.NoError(t, theirs.Unlock())
	})
}

// Two values on one session both held the lock, where the key is the session's (etcd
// 5199, 11364; ZooKeeper's WriteLock).
func TestHazardA5_TwoValuesOnOneSession(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.acquired(t)
		require.False(t, locktest.Try(t, s.Peer, s.path))
		s.holdsAlone(t)
	})
}

// The timeout began anew each time that the queue moved (kazoo, lock.py).
func TestHazardA4_TimeoutIsCountedOnce(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		const timeout = time.Second
		s := newScene(t)
		leave := s.occupy(t)
		holder := s.path + "/" + s.other.Children(s.path)[0]
		type outcome struct {
			ok  bool
			err error
		}
		done := make(chan outcome, 1)
		go func() {
			ok, err := s.lock.AcquireTimeout(s.ctx, timeout)
			done <- outcome{ok, err}
		}()
		var got *outcome
		locktest.Eventually(t, func() bool {
			select {
			case o := <-done:
				got = &o
			case <-time.After(timeout / 4):
				_, err := s.other.Conn.Set(holder, nil, -1) // wakes the waiter
				require.NoError(t, err)
			}
			return got != nil
		}, "a queue that moves makes the time run anew")
		require.NoError(t, got.err)
		require.False(t, got.ok)
		leave()
	})
}

// The znode ahead vanishes between the list and the watch: no watch stays on a znode that
// does not exist, where only its creation would end it (CURATOR-14, CURATOR-654), and the
// own znode is not made anew, which went on for ever (CURATOR-644, CURATOR-645).
func TestHazardA1_14_WatchOnAMissingZnode(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		holder := s.put(t, "lock-", zk.FlagEphemeral|zk.FlagSequence)
		s.Tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if p.Watch && p.Path == holder {
				if err := s.other.Conn.Delete(holder, -1); err != nil {
					t.Error(err)
				}
			}
			return wiretap.Pass
		})
		watched := make(chan wiretap.Packet, 100)
		s.Tap.OnReply(func(request, reply wiretap.Packet) wiretap.Verdict {
			if request.Watch && request.Path == holder &&
				(reply.Err == 0 || request.Op == wiretap.Exists) {
				watched <- request
			}
			return wiretap.Pass
		})
		s.acquired(t)
		require.Empty(t, watched)
		require.Contains(t, s.requests(wiretap.GetData), holder, "it was to be watched")
		require.Len(t, s.requests(wiretap.Create), 1)
		s.holdsAlone(t)
	})
}

// The znode ahead is gone, by its owner or a stranger: the own znode keeps its place
// (CURATOR-504, CURATOR-644).
func TestHazardA1_17_PredecessorGone(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		leave := s.occupy(t)
		ahead := s.put(t, "lock-", zk.FlagEphemeral|zk.FlagSequence)
		done := s.acquire()
		require.Equal(t, 2, s.steps.Nth(t, recipes.EventQueued, 1).Ahead)
		s.awaitWatch(t, ahead, 1)
		holder := s.path + "/" + s.other.Children(s.path)[0]
		s.delete(t, ahead)
		s.awaitWatch(t, holder, 1)
		leave()
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		require.Len(t, s.requests(wiretap.Create), 1)
		s.holdsAlone(t)
	})
}

// A try that made a znode and left it behind (spring-integration 2557), or a watch (E12:
// the client cannot remove one): as many as there were tries.
func TestHazardE12_TriesLeaveNothing(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		server := zkserver.Start(t)
		s := &scene{
			Peer:  locktest.NewPeer(t, server.Connect(), locktest.Lasting),
			other: locktest.NewPeer(t, server.Connect(), locktest.Lasting),
			path:  zkserver.Path(t), steps: new(locktest.Recorder),
			ctx: locktest.Owner(t),
		}
		s.makeDir(t)
		s.use(t, s.Conn)
		leave := s.occupy(t)
		holder := s.path + "/" + s.other.Children(s.path)[0]
		const tries = 50
		for i := range tries {
			ok, err := s.lock.AcquireTimeout(s.ctx,
				time.Duration(i%3)*20*time.Millisecond)
			locktest.RequireOutOfTime(t, err)
			require.False(t, ok)
		}
		require.Equal(t, 1, s.watches(holder), "%d tries share one watch", tries)
		s.other.AwaitChildren(s.path, 1)
		// on the holder's znode: the holder's own, and one for all who waited
		locktest.Eventually(t, func() bool {
			summary, err := server.Servers[0].FourLetter("wchs")
			require.NoError(t, err)
			return strings.HasSuffix(strings.TrimSpace(summary), "Total watches:2")
		}, "there are more watches than two")
		leave()
	})
}

// Near the end of the counter servers give one number to several znodes: no order is left
// (ZOOKEEPER-3249, ZOOKEEPER-4706).
func TestHazardA1_21_CounterNearItsEnd(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]int32{
		"before": math.MaxInt32 - 5, "at": math.MaxInt32, "behind": math.MinInt32 + 5,
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			s := newScene(t)
			s.Tap.ShiftSequence(first)
			err := s.lock.Acquire(s.ctx)
			require.ErrorContains(t, err, "sequence counter of "+s.path)
			require.ErrorContains(t, err, "delete "+s.path)
			s.other.AwaitChildren(s.path, 0)
			require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrNotOwner)
			ok, err := s.lock.AcquireTimeout(s.ctx, time.Minute)
			require.False(t, ok)
			require.ErrorContains(t, err, "sequence counter of "+s.path)
		})
	}
}

// Before 3.6 the counter wrapped to negative numbers, which as strings sort first, and
// backwards (CURATOR compares strings, as kazoo did: kazoo 606, 730).
func TestHazardA1_21_OrderOfNegativeNumbers(t *testing.T) {
	t.Parallel()
	const margin = 1 << 17
	for name, c := range map[string]struct {
		first int32
		ahead string // a znode that was created before the counter wrapped
	}{
		"behind a positive number": {math.MinInt32 + margin, "lock-2147352577"},
		"among negative numbers":   {-1000, ""},
		"across zero":              {-2, ""},
		"in order of digits":       {8, ""},
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			s := newScene(t)
			s.Tap.ShiftSequence(c.first)
			var ahead []string
			if c.ahead != "" { // by the connection whose numbers are shifted
				node, err := s.Conn.Create(
					s.path+"/"+c.ahead, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll),
				)
				require.NoError(t, err)
				ahead = append(ahead, node)
			}
			s.queueUp(t, ahead)
		})
	}
}

// queueUp lets five owners queue behind the znodes that are ahead, and checks that they
// get the lock in that order.
func (s *scene) queueUp(t *testing.T, ahead []string) {
	t.Helper()
	const owners = 5
	granted := make(chan int, owners)
	done := make([]<-chan error, owners)
	gate := s.put(t, "lock-", zk.FlagEphemeral|zk.FlagSequence)
	for i := range owners {
		done[i] = locktest.Start(func() error {
			ctx := locktest.Owner(t)
			if err := s.lock.Acquire(ctx); err != nil {
				return err
			}
			granted <- i
			return s.lock.Release(ctx)
		})
		require.Equal(t, len(ahead)+1+i, s.steps.Nth(t, recipes.EventQueued, i+1).Ahead)
	}
	for _, node := range ahead {
		require.NoError(t, s.Conn.Delete(node, -1))
	}
	require.Empty(t, granted)
	s.delete(t, gate)
	for i := range owners {
		require.Equal(t, i, locktest.Within(t, granted, "nobody gets the lock"))
		require.NoError(t, locktest.Within(t, done[i], "the lock is not released"))
	}
}
