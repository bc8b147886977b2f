package lock_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

func readWriteLock(p *locktest.Peer, path string) *recipes.InterProcessReadWriteLock {
	p.TB.Helper()
	return locktest.NewReadWriteLock(
		p.TB, p.Conn, path, recipes.WithSessionTimeout(p.Timeout))
}

func TestReadersShareAndWritersExclude(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir := zkserver.Path(t)
		one, two := readWriteLock(
			locktest.SharedPeer(t), dir,
		), readWriteLock(locktest.SharedPeer(t), dir)
		a, b := locktest.Owner(t), locktest.Owner(t)
		require.Same(t, one.ReadLock(), one.ReadLock())
		require.Same(t, one.WriteLock(), one.WriteLock())

		require.True(t, locktest.Gets(a, t, one.ReadLock()))
		require.True(t, locktest.Gets(b, t, one.ReadLock()),
			"another owner of the process")
		require.True(t, locktest.Gets(a, t, two.ReadLock()), "another process")
		require.False(t, locktest.Gets(b, t, two.WriteLock()))
		require.NoError(t, one.ReadLock().Release(a))
		require.NoError(t, two.ReadLock().Release(a))
		require.False(t, locktest.Gets(b, t, two.WriteLock()), "one reader is left")
		require.NoError(t, one.ReadLock().Release(b))

		require.True(t, locktest.Gets(a, t, one.WriteLock()))
		for _, l := range []recipes.InterProcessLock{
			one.ReadLock(), one.WriteLock(), two.ReadLock(), two.WriteLock(),
		} {
			require.False(
				t, locktest.Gets(b, t, l), "another owner gets in beside the writer",
			)
		}
		require.False(t, one.ReadLock().IsOwned(b))
		require.NoError(t, one.WriteLock().Release(a))
		require.True(t, locktest.Gets(b, t, two.WriteLock()))
		require.NoError(t, two.WriteLock().Release(b))
	})
}

// Three processes, some owners of which share a value, ask for "RRWRWWR"; whoever is
// granted stays until told.
func TestReadersAndWritersGoInTurn(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, looker := zkserver.Path(t), locktest.SharedPeer(t)
		locks := []*recipes.InterProcessReadWriteLock{
			readWriteLock(locktest.SharedPeer(t), dir),
			readWriteLock(locktest.SharedPeer(t), dir),
			readWriteLock(locktest.SharedPeer(t), dir),
		}
		first, ctx := readWriteLock(looker, dir), locktest.Owner(t)
		require.NoError(t, first.WriteLock().Acquire(ctx))

		var ended []<-chan error
		const order = "RRWRWWR"
		granted, leave := make(chan int, len(order)), make([]chan struct{}, len(order))
		for i, side := range order {
			var lock recipes.InterProcessLock = locks[i%len(locks)].ReadLock()
			if side == 'W' {
				lock = locks[i%len(locks)].WriteLock()
			}
			leave[i] = make(chan struct{})
			ended = append(ended, locktest.Start(func() error {
				return recipes.Do(locktest.Owner(t), lock, func(
					context.Context, *recipes.Hold,
				) error {
					granted <- i
					<-leave[i]
					return nil
				})
			}))
			looker.AwaitChildren(dir, 2+i)
		}
		require.NoError(t, first.WriteLock().Release(ctx))
		for _, together := range [][]int{{0, 1}, {2}, {3}, {4}, {5}, {6}} {
			var got []int
			for range together {
				got = append(got, locktest.Within(t, granted, "nobody is granted"))
			}
			slices.Sort(got)
			require.Equal(t, together, got)
			for _, i := range together {
				require.Empty(t, granted, "somebody else is granted too")
				close(leave[i])
				require.NoError(t, locktest.Within(t, ended[i], "it does not leave"))
			}
		}
	})
}

// Curator's reader watches the first writer ahead and wakes with all readers behind later
// ones.
func TestAReaderWatchesTheNearestWriter(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p := zkserver.Path(t), locktest.SharedPeer(t)
		one, two := locktest.SharedPeer(t), locktest.SharedPeer(t)
		holder, ctx := readWriteLock(one, dir).WriteLock(), locktest.Owner(t)
		require.NoError(t, holder.Acquire(ctx))
		giveUp, cancel := context.WithCancel(locktest.Owner(t))
		waiting := locktest.Start(func() error {
			return readWriteLock(two, dir).WriteLock().Acquire(giveUp)
		})
		second := dir + "/" + one.AwaitChildren(dir, 2)[1]
		earlier := locktest.Start(func() error {
			return readWriteLock(two, dir).ReadLock().Acquire(locktest.Owner(t))
		})
		one.AwaitChildren(dir, 3)

		lock := readWriteLock(p, dir).ReadLock()
		acquired := locktest.Start(func() error { return lock.Acquire(ctx) })
		watched := func(node string) func() bool {
			return func() bool { return slices.Contains(p.Watching(), node) }
		}
		locktest.Eventually(t, watched(second), "the nearest writer is not watched")
		require.False(t, watched(holder.LockPath(ctx))(), "the first writer is watched")
		cancel()
		require.ErrorIs(t, locktest.Within(t, waiting, "the second writer"),
			context.Canceled)
		locktest.Eventually(
			t, watched(holder.LockPath(ctx)),
			"the first writer is not watched when it is the nearest",
		)
		require.NoError(t, holder.Release(ctx))
		require.NoError(t, locktest.Within(t, acquired, "the reader's turn"))
		require.NoError(t, locktest.Within(t, earlier, "the other reader's turn"))
	})
}

func TestDowngrade(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		l, ctx := readWriteLock(p, dir), locktest.Owner(t)
		require.NoError(t, l.WriteLock().Acquire(ctx))
		write := l.WriteLock().Hold(ctx)
		// Others in the queue have larger zxids than the write lock's token; the read
		// lock's must not be larger than theirs.
		reader := locktest.Start(func() error {
			return readWriteLock(other, dir).ReadLock().Acquire(locktest.Owner(t))
		})
		other.AwaitChildren(dir, 2)

		require.True(t, locktest.Gets(ctx, t, l.ReadLock()))
		read := l.ReadLock().Hold(ctx)
		require.Regexp(t,
			`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-__READ__`+
				sequence(write.Path())+`$`, path.Base(read.Path()))
		_, stat, err := other.Conn.Get(read.Path())
		require.NoError(t, err)
		require.Equal(t, p.Conn.SessionID(), stat.EphemeralOwner)
		require.Equal(t, write.FencingToken(), read.FencingToken())

		require.NoError(t, l.WriteLock().Acquire(ctx), "re-entry while both are held")
		require.NoError(t, l.ReadLock().Acquire(ctx))
		require.NoError(t, l.WriteLock().Release(ctx))
		require.NoError(t, l.ReadLock().Release(ctx))
		require.True(t, l.ReadLock().IsOwned(ctx))
		require.NoError(t, l.WriteLock().Release(ctx))
		require.NoError(t, locktest.Within(t, reader, "other readers come in"))
		require.NoError(t, read.Err())
		require.False(
			t, locktest.Gets(locktest.Owner(t), t, readWriteLock(other, dir).WriteLock()),
		)
		require.NoError(t, l.ReadLock().Release(ctx))
		require.ErrorIs(t, l.ReadLock().Release(ctx), recipes.ErrNotOwner)
	})
}

// The writer right behind must see the reader that has come in ahead of it meanwhile
// (CURATOR-276, CURATOR-621).
func TestDowngradeKeepsTheNextWriterOut(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]bool{
		"of the same process": true, "of another process": false,
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			dir, p := zkserver.Path(t), locktest.SharedPeer(t)
			l, ctx, next := readWriteLock(p, dir), locktest.Owner(t), p
			if !inside {
				next = locktest.SharedPeer(t)
			}
			require.NoError(t, l.WriteLock().Acquire(ctx))
			var reading atomic.Bool
			beside, ended := make(chan bool, 1), make(chan error, 1)
			go func() {
				writer := readWriteLock(next, dir).WriteLock()
				err := writer.Acquire(locktest.Owner(t))
				beside <- reading.Load()
				ended <- err
			}()
			p.AwaitChildren(dir, 2)
			if !inside { // it waits for the write lock
				locktest.Eventually(t, func() bool {
					return slices.Contains(next.Watching(), l.WriteLock().LockPath(ctx))
				}, "it does not wait")
			}
			require.NoError(t, l.ReadLock().Acquire(ctx))
			reading.Store(true)
			looked := next.Tap.NthReply(wiretap.GetChildren2, 1, wiretap.Pass)
			require.NoError(t, l.WriteLock().Release(ctx))
			if inside { // it knows the reader, and has no need to look
				p.AwaitChildren(dir, 2)
				closed := make(chan struct{})
				close(closed)
				looked = closed
			}
			select {
			case <-looked:
			case <-beside:
				t.Fatal("a writer got in beside the reader")
			case <-time.After(locktest.Patience):
				t.Fatal("the writer does not look again")
			}
			require.NoError(t, l.ReadLock().Hold(ctx).Err())
			reading.Store(false)
			require.NoError(t, l.ReadLock().Release(ctx))
			require.False(
				t, locktest.Within(t, beside, "the writer's turn"),
				"a writer got in beside the reader",
			)
			require.NoError(t, locktest.Within(t, ended, "the writer"))
		})
	}
}

func TestDowngradeSurvivesLostReplies(t *testing.T) {
	t.Parallel()
	zkserver.Resuming(t)
	for name, fault := range map[string]func(*locktest.Peer) <-chan struct{}{
		"create reply": func(p *locktest.Peer) <-chan struct{} {
			return p.Tap.LoseReply(wiretap.Create, 1)
		},
		"create request": func(p *locktest.Peer) <-chan struct{} {
			return p.Tap.LoseRequest(wiretap.Create, 1)
		},
		"list behind": func(p *locktest.Peer) <-chan struct{} {
			return p.Tap.NthReply(wiretap.GetChildren2, 1, wiretap.Cut)
		},
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			dir, other := zkserver.Path(t), locktest.SharedPeer(t)
			p := locktest.NewPeer(t, locktest.ManyNames(t), locktest.Lasting)
			l, ctx := readWriteLock(p, dir), locktest.Owner(t)
			require.NoError(t, l.WriteLock().Acquire(ctx))
			lost := fault(p)
			require.NoError(t, locktest.Within(
				t, locktest.Start(func() error { return l.ReadLock().Acquire(ctx) }),
				"the read lock",
			))
			locktest.Within(t, lost, "nothing was lost")
			write, read := l.WriteLock().LockPath(ctx), l.ReadLock().LockPath(ctx)
			require.Equal(t, sequence(write), sequence(read))
			require.ElementsMatch(
				t, []string{path.Base(write), path.Base(read)}, other.Children(dir),
			)
			require.NoError(t, l.WriteLock().Release(ctx))
			require.NoError(t, l.ReadLock().Release(ctx))
			other.AwaitChildren(dir, 0)
		})
	}
}

// The reply to the read lock's create is lost, and with it the session; the server still
// has both znodes. The name of the read lock's is taken, but not by a znode that may be
// taken over.
func TestDowngradeWhenTheSessionEnds(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, other := zkserver.Path(t), locktest.SharedPeer(t)
		p := locktest.NewPeer(t, locktest.ManyNames(t), 2*time.Second)
		l, ctx := readWriteLock(p, dir), locktest.Owner(t)
		require.NoError(t, l.WriteLock().Acquire(ctx))
		write, old := l.WriteLock().Hold(ctx), p.Conn.SessionID()
		expired := p.Tap.NthRequest(
			wiretap.Connect, 1, wiretap.Answer(locktest.SessionExpired),
		)
		p.Tap.LoseReply(wiretap.Create, 1)
		acquired := locktest.Start(func() error { return l.ReadLock().Acquire(ctx) })
		locktest.Within(t, expired, "the session does not end")
		locktest.Within(t, write.Lost(), "the write lock's loss")
		require.NoError(
			t, locktest.Within(t, acquired, "the read lock in the new session"),
			"it joins the queue anew",
		)
		require.NotEqual(t, old, p.Conn.SessionID())
		require.NotEqual(t, sequence(write.Path()), sequence(l.ReadLock().LockPath(ctx)))
		require.Equal(
			t, []string{path.Base(l.ReadLock().LockPath(ctx))},
			other.AwaitChildren(dir, 1),
			"it waited for the old znodes to go",
		)
		require.ErrorIs(t, l.WriteLock().Release(ctx), recipes.ErrLockLost)
		require.NoError(t, l.ReadLock().Release(ctx))
	})
}

// The write lock's znode was deleted and the notice is late: another writer may be in, so
// there is nothing to downgrade.
func TestNoDowngradeOfAWriteLockThatIsGone(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		l, ctx := readWriteLock(p, dir), locktest.Owner(t)
		require.NoError(t, l.WriteLock().Acquire(ctx))
		hold := l.WriteLock().Hold(ctx)
		locktest.AwaitOwnWatch(t, p)
		_, err := p.Conn.Sync(dir) // behind the watch: that one is set now
		require.NoError(t, err)
		late := p.Tap.NthReply(wiretap.Event, 1, wiretap.Drop)
		require.NoError(t, other.Conn.Delete(hold.Path(), -1))
		locktest.Within(t, late, "the notice")
		intruder := readWriteLock(other, dir).WriteLock()
		require.NoError(t, intruder.Acquire(ctx))
		require.NoError(t, hold.Err(), "it knows of the loss, and the test shows nothing")

		require.False(t, locktest.Gets(ctx, t, l.ReadLock()),
			"a reader beside the writer")
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
		require.NoError(t, intruder.Release(ctx))
		require.NoError(t, l.ReadLock().Acquire(ctx))
		require.NoError(t, l.ReadLock().Release(ctx))
		require.ErrorIs(t, l.WriteLock().Release(ctx), recipes.ErrLockLost)
	})
}

func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p := zkserver.Path(t), locktest.SharedPeer(t)
		l, ctx := readWriteLock(p, dir), locktest.Owner(t)
		refused := func() {
			t.Helper()
			p.Tap.Reset()
			err := locktest.Within(
				t, locktest.Start(func() error { return l.WriteLock().Acquire(ctx) }),
				"Acquire",
			)
			require.ErrorIs(t, err, recipes.ErrUpgrade)
			require.ErrorContains(t, err, "release it first")
			require.ErrorContains(t, err, "acquire "+dir)
			for _, timeout := range []time.Duration{-1, 0, time.Hour} {
				ok, err := l.WriteLock().AcquireTimeout(ctx, timeout)
				require.False(t, ok)
				require.ErrorIs(t, err, recipes.ErrUpgrade, "AcquireTimeout(%v)", timeout)
			}
			require.Zero(t, p.Tap.Count(wiretap.Create))
			require.Zero(t, p.Tap.Count(wiretap.GetChildren2))
		}
		require.NoError(t, l.ReadLock().Acquire(ctx))
		refused()
		require.False(
			t, locktest.Gets(locktest.Owner(t), t, l.WriteLock()),
			"another owner waits like anybody",
		)
		require.NoError(t, l.ReadLock().Release(ctx))
		require.NoError(t, l.WriteLock().Acquire(ctx))
		require.NoError(t, l.ReadLock().Acquire(ctx))
		require.NoError(t, l.WriteLock().Release(ctx))
		refused() // after a downgrade, too
		require.NoError(t, l.ReadLock().Release(ctx))
	})
}

func TestAWriteLockLostAboveItsReadLock(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		l, ctx := readWriteLock(p, dir), locktest.Owner(t)
		require.NoError(t, l.WriteLock().Acquire(ctx))
		require.NoError(t, l.ReadLock().Acquire(ctx))
		write, read := l.WriteLock().Hold(ctx), l.ReadLock().Hold(ctx)
		writer := readWriteLock(other, dir).WriteLock()
		waiting := locktest.Start(func() error { return writer.Acquire(ctx) })
		other.AwaitChildren(dir, 3)
		require.NoError(t, other.Conn.Delete(write.Path(), -1))
		locktest.Within(t, write.Lost(), "the loss")
		require.NoError(t, read.Err(), "the read lock has a znode of its own")
		require.ErrorIs(t, l.WriteLock().Acquire(ctx), recipes.ErrLockLost)
		require.ErrorIs(t, l.WriteLock().Release(ctx), recipes.ErrLockLost)
		_, err := l.WriteLock().AcquireTimeout(ctx, 0)
		require.ErrorIs(t, err, recipes.ErrUpgrade)
		locktest.Eventually(
			t, func() bool { return slices.Contains(other.Watching(), read.Path()) },
			"the writer does not wait for the reader",
		)
		require.False(t, writer.IsAcquiredInThisProcess())
		require.NoError(t, l.ReadLock().Release(ctx))
		require.NoError(t, locktest.Within(t, waiting, "the writer's turn"))
		require.NoError(t, writer.Release(ctx))
	})
}

func TestReadWriteParticipants(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, p, other := zkserver.Path(t), locktest.SharedPeer(t), locktest.SharedPeer(t)
		l, theirs := readWriteLock(p, dir), readWriteLock(other, dir)
		ctx := locktest.Owner(t)
		require.NoError(t, l.WriteLock().Acquire(ctx))
		require.NoError(t, l.ReadLock().Acquire(ctx)) // a pair of one number
		var ended []<-chan error
		leave, cancel := context.WithCancel(locktest.Owner(t))
		for i, lock := range []recipes.InterProcessLock{
			theirs.ReadLock(), theirs.ReadLock(), theirs.WriteLock(), theirs.ReadLock(),
		} {
			ended = append(ended, locktest.Start(
				func() error { return lock.Acquire(recipes.WithOwner(leave)) },
			))
			other.AwaitChildren(dir, 3+i)
		}
		check := func(order string, holding []bool) {
			t.Helper()
			all, err := l.ReadLock().Participants(t.Context())
			require.NoError(t, err)
			same, err := theirs.WriteLock().Participants(t.Context())
			require.NoError(t, err)
			require.Equal(t, all, same)
			require.Len(t, all, len(order))
			var got []bool
			kinds := map[string][]string{}
			for i, at := range all {
				got = append(got, at.Holding)
				for side, name := range map[byte]string{
					'R': "__READ__", 'W': "__WRIT__",
				} {
					if strings.Contains(at.Node, name) {
						kinds[name] = append(kinds[name], at.Node)
						require.True(
							t, order[i] == side || order[i] == '*', "place %d is %s", i,
							at.Node,
						)
					}
				}
			}
			require.Equal(t, holding, got)
			readers, err := l.ReadLock().ParticipantNodes(t.Context())
			require.NoError(t, err)
			require.Equal(t, kinds["__READ__"], readers)
			writers, err := l.WriteLock().ParticipantNodes(t.Context())
			require.NoError(t, err)
			require.Equal(t, kinds["__WRIT__"], writers)
		}
		check("**RRWR", []bool{true, true, false, false, false, false})
		require.NoError(t, l.WriteLock().Release(ctx))
		require.NoError(t, locktest.Within(t, ended[0], "the first reader"))
		require.NoError(t, locktest.Within(t, ended[1], "the second reader"))
		check("RRRWR", []bool{true, true, true, false, false})
		cancel()
		require.ErrorIs(t, locktest.Within(t, ended[2], "the writer"), context.Canceled)
		// it may have come in when the writer left
		if err := locktest.Within(t, ended[3], "the last reader"); err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}

func TestRevokeReadersAndWriters(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		dir, other := zkserver.Path(t), locktest.SharedPeer(t)
		l, ctx := readWriteLock(locktest.SharedPeer(t), dir), locktest.Owner(t)
		readers, writers := locktest.NewAsked(), locktest.NewAsked()
		l.ReadLock().MakeRevocable(readers.Listen)
		l.WriteLock().MakeRevocable(writers.Listen)
		require.NoError(t, l.WriteLock().Acquire(ctx))
		require.NoError(t, l.ReadLock().Acquire(ctx))
		require.NoError(
			t,
			recipes.AttemptRevoke(t.Context(), other.Conn, l.WriteLock().LockPath(ctx)),
		)
		writers.Once(t)
		require.NoError(
			t, recipes.AttemptRevoke(t.Context(), other.Conn, l.ReadLock().LockPath(ctx)),
		)
		readers.Once(t)
		require.Zero(
			t, readers.Count()+writers.Count(), "each side hears of its own znode only",
		)

		waiting := locktest.Start(func() error {
			return l.ReadLock().Acquire(locktest.Owner(t))
		})
		locktest.Eventually(
			t, func() bool { return len(other.Children(dir)) == 3 },
			"the reader does not queue",
		)
		require.NoError(
			t, recipes.AttemptRevoke(
				t.Context(), other.Conn, dir+"/"+other.Children(dir)[2],
			),
		)
		readers.Once(t)
		require.NoError(t, l.WriteLock().Release(ctx))
		require.NoError(t, locktest.Within(t, waiting, "the reader's turn"))
		_, err := other.Conn.Set(l.ReadLock().LockPath(ctx), []byte("no request"), -1)
		require.NoError(t, err)
		require.NoError(t, l.ReadLock().Release(ctx))
		require.Zero(t, readers.Count()+writers.Count())
	})
}
