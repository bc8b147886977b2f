package recipes_test

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
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// gets tells whether ctx's owner gets lock at once; it keeps it.
func gets(ctx context.Context, t *testing.T, lock recipes.InterProcessLock) bool {
	t.Helper()
	ok, err := lock.AcquireTimeout(ctx, 0)
	require.NoError(t, err)
	return ok
}

func TestReadersShareAndWritersExclude(t *testing.T) {
	t.Parallel()
	dir := zkserver.Path(t)
	one, two := readWriteLock(sharedPeer(t), dir), readWriteLock(sharedPeer(t), dir)
	a, b := ownerContext(t), ownerContext(t)
	require.Same(t, one.ReadLock(), one.ReadLock())
	require.Same(t, one.WriteLock(), one.WriteLock())

	require.True(t, gets(a, t, one.ReadLock()))
	require.True(t, gets(b, t, one.ReadLock()), "another owner of the process")
	require.True(t, gets(a, t, two.ReadLock()), "another process")
	require.False(t, gets(b, t, two.WriteLock()))
	require.NoError(t, one.ReadLock().Release(a))
	require.NoError(t, two.ReadLock().Release(a))
	require.False(t, gets(b, t, two.WriteLock()), "one reader is left")
	require.NoError(t, one.ReadLock().Release(b))

	require.True(t, gets(a, t, one.WriteLock()))
	for _, l := range []recipes.InterProcessLock{one.ReadLock(), one.WriteLock(), two.ReadLock(), two.WriteLock()} {
		require.False(t, gets(b, t, l), "another owner gets in beside the writer")
	}
	require.False(t, one.ReadLock().IsOwned(b))
	require.NoError(t, one.WriteLock().Release(a))
	require.True(t, gets(b, t, two.WriteLock()))
	require.NoError(t, two.WriteLock().Release(b))
}

// Three processes, some owners of which share a value, ask for "RRWRWWR"; whoever is granted stays until told.
func TestReadersAndWritersGoInTurn(t *testing.T) {
	t.Parallel()
	dir, looker := zkserver.Path(t), sharedPeer(t)
	locks := []*recipes.InterProcessReadWriteLock{
		readWriteLock(sharedPeer(t), dir), readWriteLock(sharedPeer(t), dir), readWriteLock(sharedPeer(t), dir),
	}
	first, ctx := readWriteLock(looker, dir), ownerContext(t)
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
		ended = append(ended, start(func() error {
			return recipes.Do(ownerContext(t), lock, func(context.Context, *recipes.Hold) error {
				granted <- i
				<-leave[i]
				return nil
			})
		}))
		looker.awaitChildren(dir, 2+i)
	}
	require.NoError(t, first.WriteLock().Release(ctx))
	for _, together := range [][]int{{0, 1}, {2}, {3}, {4}, {5}, {6}} {
		var got []int
		for range together {
			got = append(got, within(t, granted, "nobody is granted"))
		}
		slices.Sort(got)
		require.Equal(t, together, got)
		for _, i := range together {
			require.Empty(t, granted, "somebody else is granted too")
			close(leave[i])
			require.NoError(t, within(t, ended[i], "it does not leave"))
		}
	}
}

// Curator's reader watches the first writer ahead and wakes with all readers behind later ones.
func TestAReaderWatchesTheNearestWriter(t *testing.T) {
	t.Parallel()
	dir, one, two, p := zkserver.Path(t), sharedPeer(t), sharedPeer(t), sharedPeer(t)
	holder, ctx := readWriteLock(one, dir).WriteLock(), ownerContext(t)
	require.NoError(t, holder.Acquire(ctx))
	giveUp, cancel := context.WithCancel(ownerContext(t))
	waiting := start(func() error { return readWriteLock(two, dir).WriteLock().Acquire(giveUp) })
	second := dir + "/" + one.awaitChildren(dir, 2)[1]
	earlier := start(func() error { return readWriteLock(two, dir).ReadLock().Acquire(ownerContext(t)) })
	one.awaitChildren(dir, 3)

	lock := readWriteLock(p, dir).ReadLock()
	acquired := start(func() error { return lock.Acquire(ctx) })
	watched := func(node string) func() bool {
		return func() bool { return slices.Contains(watching(p.tap), node) }
	}
	eventually(t, watched(second), "the nearest writer is not watched")
	require.False(t, watched(holder.LockPath(ctx))(), "the first writer is watched")
	cancel()
	require.ErrorIs(t, within(t, waiting, "the second writer"), context.Canceled)
	eventually(t, watched(holder.LockPath(ctx)), "the first writer is not watched when it is the nearest")
	require.NoError(t, holder.Release(ctx))
	require.NoError(t, within(t, acquired, "the reader's turn"))
	require.NoError(t, within(t, earlier, "the other reader's turn"))
}

func TestDowngrade(t *testing.T) {
	t.Parallel()
	dir, p, other := zkserver.Path(t), sharedPeer(t), sharedPeer(t)
	l, ctx := readWriteLock(p, dir), ownerContext(t)
	require.NoError(t, l.WriteLock().Acquire(ctx))
	write := l.WriteLock().Hold(ctx)
	// Others in the queue have larger zxids than the write lock's token; the read lock's must not be larger than theirs.
	reader := start(func() error { return readWriteLock(other, dir).ReadLock().Acquire(ownerContext(t)) })
	other.awaitChildren(dir, 2)

	require.True(t, gets(ctx, t, l.ReadLock()))
	read := l.ReadLock().Hold(ctx)
	require.Regexp(t, `^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-__READ__`+sequence(write.Path())+`$`, path.Base(read.Path()))
	_, stat, err := other.conn.Get(read.Path())
	require.NoError(t, err)
	require.Equal(t, p.conn.SessionID(), stat.EphemeralOwner)
	require.Equal(t, write.FencingToken(), read.FencingToken())

	require.NoError(t, l.WriteLock().Acquire(ctx), "re-entry while both are held")
	require.NoError(t, l.ReadLock().Acquire(ctx))
	require.NoError(t, l.WriteLock().Release(ctx))
	require.NoError(t, l.ReadLock().Release(ctx))
	require.True(t, l.ReadLock().IsOwned(ctx))
	require.NoError(t, l.WriteLock().Release(ctx))
	require.NoError(t, within(t, reader, "other readers come in"))
	require.NoError(t, read.Err())
	require.False(t, gets(ownerContext(t), t, readWriteLock(other, dir).WriteLock()))
	require.NoError(t, l.ReadLock().Release(ctx))
	require.ErrorIs(t, l.ReadLock().Release(ctx), recipes.ErrNotOwner)
}

// The writer right behind must see the reader that has come in ahead of it meanwhile (CURATOR-276, CURATOR-621).
func TestDowngradeKeepsTheNextWriterOut(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]bool{"of the same process": true, "of another process": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, p := zkserver.Path(t), sharedPeer(t)
			l, ctx, next := readWriteLock(p, dir), ownerContext(t), p
			if !inside {
				next = sharedPeer(t)
			}
			require.NoError(t, l.WriteLock().Acquire(ctx))
			var reading atomic.Bool
			beside, ended := make(chan bool, 1), make(chan error, 1)
			go func() {
				writer := readWriteLock(next, dir).WriteLock()
				err := writer.Acquire(ownerContext(t))
				beside <- reading.Load()
				ended <- err
			}()
			p.awaitChildren(dir, 2)
			if !inside { // it waits for the write lock
				eventually(t, func() bool { return slices.Contains(watching(next.tap), l.WriteLock().LockPath(ctx)) }, "it does not wait")
			}
			require.NoError(t, l.ReadLock().Acquire(ctx))
			reading.Store(true)
			looked := next.tap.NthReply(wiretap.GetChildren2, 1, wiretap.Pass)
			require.NoError(t, l.WriteLock().Release(ctx))
			select {
			case <-looked:
			case <-beside:
				t.Fatal("a writer got in beside the reader")
			case <-time.After(patience):
				t.Fatal("the writer does not look again")
			}
			require.NoError(t, l.ReadLock().Hold(ctx).Err())
			reading.Store(false)
			require.NoError(t, l.ReadLock().Release(ctx))
			require.False(t, within(t, beside, "the writer's turn"), "a writer got in beside the reader")
			require.NoError(t, within(t, ended, "the writer"))
		})
	}
}

func TestDowngradeSurvivesLostReplies(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*peer) <-chan struct{}{
		"create reply":   func(p *peer) <-chan struct{} { return p.tap.LoseReply(wiretap.Create, 1) },
		"create request": func(p *peer) <-chan struct{} { return p.tap.LoseRequest(wiretap.Create, 1) },
		"list behind":    func(p *peer) <-chan struct{} { return p.tap.NthReply(wiretap.GetChildren2, 1, wiretap.Cut) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, p, other := zkserver.Path(t), newPeer(t, manyNames(t), lasting), sharedPeer(t)
			l, ctx := readWriteLock(p, dir), ownerContext(t)
			require.NoError(t, l.WriteLock().Acquire(ctx))
			lost := fault(p)
			require.NoError(t, within(t, start(func() error { return l.ReadLock().Acquire(ctx) }), "the read lock"))
			within(t, lost, "nothing was lost")
			write, read := l.WriteLock().LockPath(ctx), l.ReadLock().LockPath(ctx)
			require.Equal(t, sequence(write), sequence(read))
			require.ElementsMatch(t, []string{path.Base(write), path.Base(read)}, other.children(dir))
			require.NoError(t, l.WriteLock().Release(ctx))
			require.NoError(t, l.ReadLock().Release(ctx))
			other.awaitChildren(dir, 0)
		})
	}
}

// The reply to the read lock's create is lost, and with it the session; the server still has both znodes. The name of the read
// lock's is taken, but not by a znode that may be taken over.
func TestDowngradeWhenTheSessionEnds(t *testing.T) {
	t.Parallel()
	dir, p, other := zkserver.Path(t), newPeer(t, manyNames(t), 2*time.Second), sharedPeer(t)
	l, ctx := readWriteLock(p, dir), ownerContext(t)
	require.NoError(t, l.WriteLock().Acquire(ctx))
	write, old := l.WriteLock().Hold(ctx), p.conn.SessionID()
	expired := p.tap.NthRequest(wiretap.Connect, 1, wiretap.Answer(sessionExpired))
	p.tap.LoseReply(wiretap.Create, 1)
	acquired := start(func() error { return l.ReadLock().Acquire(ctx) })
	within(t, expired, "the session does not end")
	within(t, write.Lost(), "the write lock's loss")
	require.NoError(t, within(t, acquired, "the read lock in the new session"), "it joins the queue anew")
	require.NotEqual(t, old, p.conn.SessionID())
	require.NotEqual(t, sequence(write.Path()), sequence(l.ReadLock().LockPath(ctx)))
	require.Equal(t, []string{path.Base(l.ReadLock().LockPath(ctx))}, other.awaitChildren(dir, 1), "it waited for the old znodes to go")
	require.ErrorIs(t, l.WriteLock().Release(ctx), recipes.ErrLockLost)
	require.NoError(t, l.ReadLock().Release(ctx))
}

// The write lock's znode was deleted and the notice is late: another writer may be in, so there is nothing to downgrade.
func TestNoDowngradeOfAWriteLockThatIsGone(t *testing.T) {
	t.Parallel()
	dir, p, other := zkserver.Path(t), sharedPeer(t), sharedPeer(t)
	l, ctx := readWriteLock(p, dir), ownerContext(t)
	require.NoError(t, l.WriteLock().Acquire(ctx))
	hold := l.WriteLock().Hold(ctx)
	awaitOwnWatch(t, p)
	late := p.tap.NthReply(wiretap.Event, 1, wiretap.Drop)
	require.NoError(t, other.conn.Delete(hold.Path(), -1))
	within(t, late, "the notice")
	intruder := readWriteLock(other, dir).WriteLock()
	require.NoError(t, intruder.Acquire(ctx))
	require.NoError(t, hold.Err(), "it knows of the loss, and the test shows nothing")

	require.False(t, gets(ctx, t, l.ReadLock()), "a reader beside the writer")
	require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
	require.NoError(t, intruder.Release(ctx))
	require.NoError(t, l.ReadLock().Acquire(ctx))
	require.NoError(t, l.ReadLock().Release(ctx))
	require.ErrorIs(t, l.WriteLock().Release(ctx), recipes.ErrLockLost)
}

func TestUpgradeIsRefused(t *testing.T) {
	t.Parallel()
	dir, p := zkserver.Path(t), sharedPeer(t)
	l, ctx := readWriteLock(p, dir), ownerContext(t)
	refused := func() {
		t.Helper()
		p.tap.Reset()
		err := within(t, start(func() error { return l.WriteLock().Acquire(ctx) }), "Acquire")
		require.ErrorIs(t, err, recipes.ErrUpgrade)
		require.ErrorContains(t, err, "acquire "+dir)
		for _, timeout := range []time.Duration{-1, 0, time.Hour} {
			ok, err := l.WriteLock().AcquireTimeout(ctx, timeout)
			require.False(t, ok)
			require.ErrorIs(t, err, recipes.ErrUpgrade, "AcquireTimeout(%v)", timeout)
		}
		require.Zero(t, p.tap.Count(wiretap.Create))
		require.Zero(t, p.tap.Count(wiretap.GetChildren2))
	}
	require.NoError(t, l.ReadLock().Acquire(ctx))
	refused()
	require.False(t, gets(ownerContext(t), t, l.WriteLock()), "another owner waits like anybody")
	require.NoError(t, l.ReadLock().Release(ctx))
	require.NoError(t, l.WriteLock().Acquire(ctx))
	require.NoError(t, l.ReadLock().Acquire(ctx))
	require.NoError(t, l.WriteLock().Release(ctx))
	refused() // after a downgrade, too
	require.NoError(t, l.ReadLock().Release(ctx))
}

func TestAWriteLockLostAboveItsReadLock(t *testing.T) {
	t.Parallel()
	dir, p, other := zkserver.Path(t), sharedPeer(t), sharedPeer(t)
	l, ctx := readWriteLock(p, dir), ownerContext(t)
	require.NoError(t, l.WriteLock().Acquire(ctx))
	require.NoError(t, l.ReadLock().Acquire(ctx))
	write, read := l.WriteLock().Hold(ctx), l.ReadLock().Hold(ctx)
	writer := readWriteLock(other, dir).WriteLock()
	waiting := start(func() error { return writer.Acquire(ctx) })
	other.awaitChildren(dir, 3)
	require.NoError(t, other.conn.Delete(write.Path(), -1))
	within(t, write.Lost(), "the loss")
	require.NoError(t, read.Err(), "the read lock has a znode of its own")
	require.ErrorIs(t, l.WriteLock().Acquire(ctx), recipes.ErrLockLost)
	require.ErrorIs(t, l.WriteLock().Release(ctx), recipes.ErrLockLost)
	_, err := l.WriteLock().AcquireTimeout(ctx, 0)
	require.ErrorIs(t, err, recipes.ErrUpgrade)
	eventually(t, func() bool { return slices.Contains(watching(other.tap), read.Path()) }, "the writer does not wait for the reader")
	require.False(t, writer.IsAcquiredInThisProcess())
	require.NoError(t, l.ReadLock().Release(ctx))
	require.NoError(t, within(t, waiting, "the writer's turn"))
	require.NoError(t, writer.Release(ctx))
}

func TestReadWriteParticipants(t *testing.T) {
	t.Parallel()
	dir, p, other := zkserver.Path(t), sharedPeer(t), sharedPeer(t)
	l, theirs, ctx := readWriteLock(p, dir), readWriteLock(other, dir), ownerContext(t)
	require.NoError(t, l.WriteLock().Acquire(ctx))
	require.NoError(t, l.ReadLock().Acquire(ctx)) // a pair of one number
	var ended []<-chan error
	leave, cancel := context.WithCancel(ownerContext(t))
	for i, lock := range []recipes.InterProcessLock{theirs.ReadLock(), theirs.ReadLock(), theirs.WriteLock(), theirs.ReadLock()} {
		ended = append(ended, start(func() error { return lock.Acquire(recipes.WithOwner(leave)) }))
		other.awaitChildren(dir, 3+i)
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
			for side, name := range map[byte]string{'R': "__READ__", 'W': "__WRIT__"} {
				if strings.Contains(at.Node, name) {
					kinds[name] = append(kinds[name], at.Node)
					require.True(t, order[i] == side || order[i] == '*', "place %d is %s", i, at.Node)
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
	require.NoError(t, within(t, ended[0], "the first reader"))
	require.NoError(t, within(t, ended[1], "the second reader"))
	check("RRRWR", []bool{true, true, true, false, false})
	cancel()
	require.ErrorIs(t, within(t, ended[2], "the writer"), context.Canceled)
	if err := within(t, ended[3], "the last reader"); err != nil { // it may have come in when the writer left
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestRevokeReadersAndWriters(t *testing.T) {
	t.Parallel()
	dir, other := zkserver.Path(t), sharedPeer(t)
	l, ctx := readWriteLock(sharedPeer(t), dir), ownerContext(t)
	readers, writers := newAsked(), newAsked()
	l.ReadLock().MakeRevocable(readers.listen)
	l.WriteLock().MakeRevocable(writers.listen)
	require.NoError(t, l.WriteLock().Acquire(ctx))
	require.NoError(t, l.ReadLock().Acquire(ctx))
	require.NoError(t, recipes.AttemptRevoke(t.Context(), other.conn, l.WriteLock().LockPath(ctx)))
	writers.once(t)
	require.NoError(t, recipes.AttemptRevoke(t.Context(), other.conn, l.ReadLock().LockPath(ctx)))
	readers.once(t)
	require.Zero(t, readers.count()+writers.count(), "each side hears of its own znode only")

	waiting := start(func() error { return l.ReadLock().Acquire(ownerContext(t)) })
	eventually(t, func() bool { return len(other.children(dir)) == 3 }, "the reader does not queue")
	require.NoError(t, recipes.AttemptRevoke(t.Context(), other.conn, dir+"/"+other.children(dir)[2]))
	readers.once(t)
	require.NoError(t, l.WriteLock().Release(ctx))
	require.NoError(t, within(t, waiting, "the reader's turn"))
	_, err := other.conn.Set(l.ReadLock().LockPath(ctx), []byte("no request"), -1)
	require.NoError(t, err)
	require.NoError(t, l.ReadLock().Release(ctx))
	require.Zero(t, readers.count()+writers.count())
}
