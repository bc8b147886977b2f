package lock_test

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// makeDirs creates the directories of a lock as a stranger would.
func makeDirs(t *testing.T, conn recipes.Conn, path string, dirs []string, acl []zk.ACL) {
	t.Helper()
	for _, dir := range append([]string{""}, dirs...) {
		_, err := conn.Create(path+dir, nil, zk.FlagPersistent, acl)
		if err != nil {
			require.ErrorIs(t, err, zk.ErrNodeExists)
		}
	}
}

// A stranger who had created the directory first could delete a holder's znode, although
// WithACL gave nobody else any right, and nobody was told.
func TestADirectoryThatIsOpenIsAWarning(t *testing.T) {
	t.Parallel()
	for _, k := range locktest.Kinds {
		zkserver.Run(t, k.Name, func(t *testing.T) {
			p, path := locktest.SharedPeer(t), zkserver.Path(t)
			require.NoError(t, p.Conn.AddAuth("digest", []byte("user:secret")))
			makeDirs(t, p.Conn, path, k.Dirs, zk.WorldACL(zk.PermAll))
			var log journal
			lock := k.MustMake(t, p.Conn, path, log.warnings(),
				recipes.WithSessionTimeout(p.Timeout),
				recipes.WithACL(zk.AuthACL(zk.PermAll)))
			ctx := locktest.Owner(t)
			var lines []string
			for range 3 {
				require.NoError(t, lock.Acquire(ctx))
				locktest.Eventually(t, func() bool {
					lines = append(lines, log.lines()...)
					return len(lines) >= len(k.Dirs)
				}, "no warning")
				require.NoError(t, lock.Release(ctx))
			}
			require.Len(t, lines, len(k.Dirs), "once for each directory")
			for _, line := range lines {
				require.Contains(t, line, "level=WARN")
				require.Contains(t, line, "dir="+path)
				require.Contains(t, line, "world:anyone has CREATE DELETE ADMIN")
			}
			require.Equal(t, len(k.Dirs), p.Tap.Count(wiretap.GetACL))
		})
	}
}

// Without WithACL there is no promise to keep, and nothing is asked.
func TestWithoutWithACLNoACLIsRead(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, path := locktest.SharedPeer(t), zkserver.Path(t)
		lock, ctx := p.Mutex(path), locktest.Owner(t)
		require.NoError(t, lock.Acquire(ctx))
		require.NoError(t, lock.Release(ctx))
		require.Zero(t, p.Tap.Count(wiretap.GetACL))
	})
}

func TestWhatIsAnOpenDirectory(t *testing.T) {
	mine := zk.DigestACL(zk.PermAll, "user", "secret")
	eve := zk.DigestACL(zk.PermDelete, "eve", "x")
	hidden := zk.DigestACL(zk.PermRead|zk.PermCreate|zk.PermDelete, "user", "secret")
	address := []zk.ACL{{Perms: zk.PermAdmin, Scheme: "ip", ID: "10.0.0.1"}}
	for name, c := range map[string]struct {
		dir, option []zk.ACL // dir nil: the lock creates it
		says        string   // "": nothing
	}{
		"created by the lock": {option: mine},
		"the same":            {dir: mine, option: mine},
		"closed further":      {dir: hidden, option: mine},
		"to read":             {dir: join(mine, zk.WorldACL(zk.PermRead)), option: mine},
		"to write":            {dir: join(mine, zk.WorldACL(zk.PermWrite)), option: mine},
		"open as the option says": {
			dir: zk.WorldACL(zk.PermAll), option: zk.WorldACL(zk.PermAll),
		},
		"to an account, anyone's option": {
			dir: join(mine, eve), option: zk.WorldACL(zk.PermAll),
		},
		"to one's own account by auth": {dir: mine, option: zk.AuthACL(zk.PermAll)},
		"to create": {
			dir: join(mine, zk.WorldACL(zk.PermCreate)), option: mine,
			says: "world:anyone has CREATE\"",
		},
		"to delete": {
			dir: join(mine, eve), option: mine, says: " has DELETE\"",
		},
		"to an address": {
			dir: join(mine, address), option: zk.AuthACL(zk.PermAll),
			says: "ip:10.0.0.1 has ADMIN\"",
		},
		"by more than the option says": {
			dir:    join(mine, zk.WorldACL(zk.PermCreate|zk.PermDelete)),
			option: join(mine, zk.WorldACL(zk.PermCreate)),
			says:   "world:anyone has DELETE\"",
		},
		"nobody can read it": {
			dir:    zk.DigestACL(zk.PermCreate|zk.PermDelete, "user", "secret"),
			option: mine, says: "level=INFO",
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			auth := []byte("user:secret")
			require.NoError(t, b.Ours.Unwrap().AddAuth("digest", auth))
			if c.dir != nil {
				makeDirs(t, b.Ours, "/lock", nil, c.dir)
			}
			var log journal
			lock := b.Mutex(t, b.Ours, "/lock", recipes.WithACL(c.option),
				recipes.WithLogger(log.logger(slog.LevelInfo)))
			ctx := locktest.Owner(t)
			if err := lock.Acquire(ctx); err == nil {
				require.NoError(t, lock.Release(ctx))
			}
			synctest.Wait()
			lines := log.lines()
			if c.says == "" {
				require.Empty(t, lines)
				return
			}
			require.Len(t, lines, 1)
			require.Contains(t, lines[0], c.says)
		})
	}
}

func join(one, other []zk.ACL) []zk.ACL {
	return append(append([]zk.ACL(nil), one...), other...)
}
