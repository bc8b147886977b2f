package lock_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// A journal keeps the lines of a log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// logger returns one that writes warnings, and what is worse.
func (j *journal) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: level}))
}

func (j *journal) warnings() recipes.Option {
	return recipes.WithLogger(j.logger(slog.LevelWarn))
}

// lines returns what was written, and forgets it.
func (j *journal) lines() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := strings.TrimSuffix(j.text.String(), "\n")
	j.text.Reset()
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// A tenant makes locks of a recipe, all at /lock.
type tenant struct {
	make locktest.Maker
	is   string // what others call it
}

var tenants = map[string]tenant{
	"mutex":           {locktest.MakeMutex, "mutex or leader selector"},
	"read lock":       {locktest.MakeReadLock, "read/write lock"},
	"write lock":      {locktest.MakeWriteLock, "read/write lock"},
	"semaphore":       {locktest.MakeLeaseLock(2), "semaphore"},
	"leader latch":    {locktest.MakeLatch, "leader latch"},
	"cached mutex":    {cachedMutex, "mutex or leader selector"},
	"leader selector": {locktest.MakeSelector, "mutex or leader selector"},
}

func cachedMutex(
	c recipes.Conn, path string, opts ...recipes.Option,
) (recipes.InterProcessLock, error) {
	opts = append(opts, recipes.WithCaching(time.Minute, 3))
	return locktest.MakeMutex(c, path, opts...)
}

// A mutex and a write lock on one path were both held, and nobody said a word.
func TestAnotherRecipeOnThePathIsAWarning(t *testing.T) {
	for first, there := range tenants {
		for second, here := range tenants {
			if there.is == here.is || here.is == "semaphore" {
				continue // they exclude each other, or it lists other directories
			}
			locktest.Run(t, second+" after "+first, func(
				t *testing.T, b *locktest.Bubble,
			) {
				var log journal
				other, err := there.make(b.Other, "/lock")
				require.NoError(t, err)
				holder := locktest.Owner(t)
				require.NoError(t, other.Acquire(holder))
				lock, err := here.make(b.Ours, "/lock", log.warnings())
				require.NoError(t, err)
				ctx := locktest.Owner(t)
				for range 3 { // once for each value
					require.NoError(t, lock.Acquire(ctx), "they do not exclude")
					require.NoError(t, lock.Release(ctx))
				}
				lines := log.lines()
				require.Len(t, lines, 1)
				for _, says := range []string{
					"level=WARN", "another recipe uses this path", "path=/lock",
					there.is, "node=/lock/", "a path of its own",
				} {
					require.Contains(t, lines[0], says)
				}
				third := locktest.ConnectThrough(t, b.Cluster, "third")
				again, err := here.make(third, "/lock", log.warnings())
				require.NoError(t, err)
				require.NoError(t, again.Acquire(ctx))
				require.NoError(t, again.Release(ctx))
				require.Len(t, log.lines(), 1, "another value says it, too")
				require.NoError(t, other.Release(holder))
			})
		}
	}
}

func TestBothSidesOfAReadWriteLockWarnOnce(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var log journal
		mutex := b.Mutex(t, b.Other, "/lock")
		require.NoError(t, mutex.Acquire(t.Context()))
		lock := locktest.NewReadWriteLock(t, b.Ours, "/lock", log.warnings())
		ctx := locktest.Owner(t)
		for _, side := range []recipes.InterProcessLock{
			lock.WriteLock(), lock.ReadLock(), lock.WriteLock(),
		} {
			require.NoError(t, side.Acquire(ctx))
			require.NoError(t, side.Release(ctx))
		}
		lines := log.lines()
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], `recipe="read/write lock"`)
		_, err := lock.ReadLock().Participants(ctx)
		require.NoError(t, err)
		require.Empty(t, log.lines())
	})
}

func TestWhatIsNoWarning(t *testing.T) {
	for name, c := range map[string]struct {
		znodes  []string
		options []recipes.Option
		warns   string // "": nothing
	}{
		"what nobody knows": {znodes: []string{"/lock/config", "/lock/a-0000000001"}},
		"one directory":     {znodes: []string{"/lock/leases"}},
		"the other":         {znodes: []string{"/lock/locks"}},
		"a semaphore": {
			znodes: []string{"/lock/leases", "/lock/locks"}, warns: "other=semaphore",
		},
		"zk.Lock": {znodes: []string{"/lock/_c_00-lock-0000000000"}},
		"kazoo, counted": {
			znodes:  []string{"/lock/0123__lock__0000000000"},
			options: []recipes.Option{withKazoo},
		},
		"others, counted": {
			znodes:  []string{"/lock/0123-ours-latch-:0000000000"},
			options: []recipes.Option{recipes.WithNames("-ours-latch-:")},
		},
		"kazoo": {
			znodes: []string{"/lock/0123__lock__0000000000"}, warns: "WithNames",
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			var log journal
			for _, node := range append([]string{"/lock"}, c.znodes...) {
				_, err := b.Other.Create(node, nil, 0, zk.WorldACL(zk.PermAll))
				require.NoError(t, err)
			}
			lock := b.Mutex(t, b.Ours, "/lock", append(c.options, log.warnings())...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = lock.Acquire(ctx) // what is counted may be ahead
			lines := log.lines()
			if c.warns == "" {
				require.Empty(t, lines)
				return
			}
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], c.warns)
		})
	}
}

// A typing mistake in a chroot splits a fleet in two.
func TestAChrootThatIsCreatedIsLogged(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		servers := strings.Join(b.Cluster.Names(), ",")
		var log journal
		created := func(chroot string) []string {
			client, err := recipes.Connect(
				t.Context(), servers+chroot, 10*time.Second,
				recipes.WithDialer(b.Cluster.Link("new").Dial),
				recipes.WithClientLogger(log.logger(slog.LevelInfo)),
			)
			require.NoError(t, err)
			client.Close()
			return slices.DeleteFunc(log.lines(), func(line string) bool {
				return !strings.Contains(line, "chroot created")
			})
		}
		lines := created("/apps/blue")
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "level=INFO")
		require.Contains(t, lines[0], "chroot=/apps/blue")
		require.Empty(t, created("/apps/blue"))
		require.Empty(t, created(""))
		b.Cluster.Link("new").LoseReply(zktest.OpCreate)
		require.Len(t, created("/red"), 1, "whose answer was lost")
	})
}

// A loss is one warning. If lead returns something else after it, that is another, which
// does not repeat the loss.
func TestALossIsLoggedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(loss error) error
		other bool
	}{
		"the loss":       {func(loss error) error { return loss }, false},
		"around it":      {func(loss error) error { return wrapped{loss} }, false},
		"something else": {func(error) error { return context.DeadlineExceeded }, true},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			var log journal
			candidate := locktest.StartCampaign(t, b.Ours, log.warnings())
			term := candidate.Leads()
			b.Lose(t, term.Hold)
			loss := term.Hold.Err()
			term.End <- c.fails(loss)
			candidate.Leads().End <- errConfig
			require.ErrorIs(t, candidate.Ended(), errConfig)
			synctest.Wait()
			all := strings.Join(log.lines(), "\n")
			require.Equal(t, 1, strings.Count(all, loss.Error()), all)
			require.Equal(t, 1, strings.Count(all, "lock: the lock was lost"), all)
			other := `rejoining" path=/election error="context deadline`
			require.Equal(t, c.other, strings.Contains(all, other), all)
			require.Equal(t, c.other, strings.Contains(all, "rejoining"), all)
		})
	}
}

// A wrapped error is an error of the caller's own around a loss.
type wrapped struct{ error }

func (w wrapped) Error() string { return "charge the card: " + w.error.Error() }
func (w wrapped) Unwrap() error { return w.error }
