package hold_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// insisted is enough for a delete that was refused a few times to be tried again.
const insisted = time.Minute

// A landlord gives everybody rights over the directories of a lock, and takes them away.
type landlord struct {
	*testing.T
	conn *zk.Conn
	dirs []string
}

func newLandlord(t *testing.T, b *locktest.Bubble, dirs []string) landlord {
	t.Helper()
	l := landlord{t, locktest.ConnectBare(
		t, b.Cluster.Link("admin"), b.Cluster.Names()[0], 10*time.Second,
	), nil}
	for _, dir := range dirs {
		l.dirs = append(l.dirs, "/lock"+dir)
	}
	return l
}

func (l landlord) allow(perms int32) {
	l.Helper()
	for _, dir := range l.dirs {
		_, err := l.conn.SetACL(dir, zk.WorldACL(perms), -1)
		if !errors.Is(err, zk.ErrNoNode) { // an empty container was reaped
			require.NoError(l.T, err)
		}
	}
}

func (l landlord) denyDeletes() { l.allow(zk.PermAll &^ zk.PermDelete) }
func (l landlord) allowAll()    { l.allow(zk.PermAll) }

// A refusal is the answer of one call. What it was made for, that a znode of a living
// session goes, lasts: with the rights back, the znode is deleted, by no other call.
func TestARefusedDeleteIsTriedAgain(t *testing.T) {
	for _, k := range slices.Concat(locktest.Kinds, locktest.Elections) {
		locktest.Run(t, k.Name, func(t *testing.T, b *locktest.Bubble) {
			testRefusedDelete(t, b, k)
		})
	}
}

func testRefusedDelete(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
	lock := k.MustMake(t, b.Ours, "/lock")
	locktest.UseTimes(t, lock, 1)
	time.Sleep(locktest.Settle)
	admin := newLandlord(t, b, k.Dirs)
	require.Empty(t, locktest.Znodes(b))

	ctx := locktest.Owner(t)
	require.NoError(t, lock.Acquire(ctx))
	time.Sleep(time.Second)
	admin.denyDeletes()
	began := time.Now()
	err := lock.Release(ctx)
	require.Less(t, time.Since(began), time.Second, "the call has its answer")
	if !k.Cached && !strings.HasPrefix(k.Name, "leader") {
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrNotOwner)
	}
	time.Sleep(10 * time.Minute)
	require.NotEmpty(t, locktest.Znodes(b), "nothing was refused")
	admin.allowAll()
	time.Sleep(insisted)
	require.Empty(t, locktest.Znodes(b))

	rival := k.MustMakeRival(t, b.Other, "/lock")
	locktest.UseTimes(t, rival, 1)
}

// So it is with a wait that is cancelled while the rights are lacking.
func TestACancelledWaitWhoseDeleteIsRefused(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		rival := k.MustMakeRival(t, b.Other, "/lock")
		lock := k.MustMake(t, b.Ours, "/lock")
		locktest.UseTimes(t, lock, 1)
		holder := locktest.Owner(t)
		require.NoError(t, rival.Acquire(holder))
		time.Sleep(locktest.Settle)
		admin := newLandlord(t, b, k.Dirs)

		ctx, cancel := context.WithCancel(locktest.Owner(t))
		waits := locktest.Start(func() error { return lock.Acquire(ctx) })
		time.Sleep(time.Second)
		held := len(locktest.Znodes(b))
		admin.denyDeletes()
		cancel()
		require.ErrorIs(t, <-waits, context.Canceled)
		time.Sleep(time.Second)
		require.Len(t, locktest.Znodes(b), held, "nothing was refused")
		admin.allowAll()
		require.NoError(t, rival.Release(holder))
		time.Sleep(insisted)
		require.Empty(t, locktest.Znodes(b))
		locktest.UseTimes(t, rival, 1)
	})
}

// And with a hold that was lost, a cached entry that nobody uses any more, and a hold
// whose rights come back with another login, at a reconnect: that does not wait.
func TestOtherDeletesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		opts []recipes.Option
		end  func(t *testing.T, v *locktest.Visit)
	}{
		"hold expired": {
			[]recipes.Option{recipes.WithMaxHold(time.Minute)},
			func(_ *testing.T, v *locktest.Visit) { <-v.Hold().Lost() },
		},
		"idle entry": {
			[]recipes.Option{recipes.WithCaching(time.Minute, 1)},
			func(_ *testing.T, v *locktest.Visit) {
				v.Leave()
				time.Sleep(2 * time.Minute)
			},
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			v := locktest.VisitLock(t, b.Mutex(t, b.Ours, "/lock", c.opts...))
			v.Entered()
			admin := newLandlord(t, b, []string{""})
			admin.denyDeletes()
			c.end(t, v)
			time.Sleep(10 * time.Minute)
			require.NotEmpty(t, locktest.Znodes(b), "nothing was refused")
			admin.allowAll()
			b.Cluster.Link("ours").Reset()
			time.Sleep(2 * time.Second)
			require.Empty(t, locktest.Znodes(b))
		})
	}
}

// The log tells of an obligation that lasts, and once it is fulfilled; it ends with the
// session, and costs two requests a minute.
func TestWhatARefusedDeleteCosts(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var log bytes.Buffer
		lock := b.Mutex(t, b.Ours, "/lock",
			recipes.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		v := locktest.VisitLock(t, lock)
		v.Entered()
		admin := newLandlord(t, b, []string{""})
		admin.denyDeletes()
		require.ErrorIs(t, lock.Release(v.Ctx), zk.ErrNoAuth)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), &log)
		require.Contains(t, log.String(), "is still being deleted")
		require.Contains(t, log.String(), "node=/lock/_c_")
		admin.allowAll()
		time.Sleep(insisted)
		synctest.Wait()
		require.Contains(t, log.String(), "znode deleted after a refusal")
	})
}

// A hold whose znode cannot be read for a moment, as at a reconnect, is watched again: it
// was not, and nobody noticed its end.
func TestAWatchThatIsRefused(t *testing.T) {
	locktest.ForAllInBubbles(t, func(t *testing.T, b *locktest.Bubble, k locktest.Kind) {
		lock := k.MustMake(t, b.Ours, "/lock")
		ctx := locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		time.Sleep(time.Second)
		hold := lock.Hold(ctx)
		admin := landlord{t, b.Other.Unwrap(), []string{hold.Path()}}
		admin.allow(zk.PermAll &^ zk.PermRead)
		b.Cluster.Link("ours").Reset()
		time.Sleep(10 * time.Minute)
		require.NoError(t, hold.Err())
		admin.allowAll()
		time.Sleep(insisted)
		require.NoError(t, b.Other.Delete(hold.Path(), -1))
		time.Sleep(locktest.Settle)
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
		require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
	})
}

// A log handler that does not return keeps no znode.
func TestARefusedDeleteThatCannotBeLogged(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		end := make(chan struct{})
		defer close(end)
		lock := b.Mutex(t, b.Ours, "/lock", recipes.WithLogger(
			slog.New(hangingHandler{slog.DiscardHandler, end})))
		v := locktest.VisitLock(t, lock)
		v.Entered()
		admin := newLandlord(t, b, []string{""})
		admin.denyDeletes()
		ctx, cancel := context.WithTimeout(v.Ctx, time.Second)
		defer cancel()
		require.Error(t, lock.Release(ctx))
		time.Sleep(10 * time.Minute)
		require.NotEmpty(t, locktest.Znodes(b), "nothing was refused")
		admin.allowAll()
		time.Sleep(insisted)
		require.Empty(t, locktest.Znodes(b))
	})
}

// A hangingHandler returns from no record before its end.
type hangingHandler struct {
	slog.Handler
	end <-chan struct{}
}

func (hangingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h hangingHandler) Handle(context.Context, slog.Record) error {
	<-h.end
	return nil
}
