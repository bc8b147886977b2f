package lock_test

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A rightCell is a cell of the table of docs/security.md: what an outsider can do who has
// one right on one znode, and no other right.
type rightCell struct {
	right, on string
	can       []string
}

// readRights reads that table: a row for each right, a column for each znode.
func readRights(t *testing.T) (found []rightCell) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/security.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "| right |")
	require.True(t, ok, "the table is gone")
	head, table, _ := strings.Cut(table, "\n")
	znodes := cells(head)
	_, table, _ = strings.Cut(table, "\n") // the line below the head
	for line := range strings.Lines(table) {
		row := cells(line)
		if len(row) != 1+len(znodes) {
			break
		}
		for i, znode := range znodes {
			g := rightCell{right: row[0], on: strings.TrimPrefix(znode, "on ")}
			if row[1+i] != "nothing" {
				g.can = strings.Split(row[1+i], "; ")
			}
			found = append(found, g)
		}
	}
	return found
}

func cells(row string) []string {
	return strings.Split(strings.Trim(row, "| \n"), " | ")
}

var rights = map[string]int32{
	"CREATE": zk.PermCreate, "READ": zk.PermRead, "WRITE": zk.PermWrite,
	"DELETE": zk.PermDelete, "ADMIN": zk.PermAdmin,
}

// What a right can be on.
const (
	onParent      = "the parent"
	onPath        = "the lock's path"
	onParticipant = "the holder's znode"
	onCount       = "the count"
)

// A heist is what an outsider tries on a lock that is held. Each has a lock of its own.
type heist struct {
	t       *testing.T
	user    *locktest.Peer // whose locks they are
	eve     *zk.Conn       // the outsider
	acl     func(on string) []zk.ACL
	paths   map[string]string
	lock    *recipes.InterProcessMutex
	hold    *recipes.Hold
	revoked chan struct{} // closed when the holder was asked to release
}

func (h *heist) newLock(path string) *recipes.InterProcessMutex {
	return h.user.Mutex(path, recipes.WithACL(h.acl(onParticipant)),
		recipes.WithData([]byte("secret")))
}

func newHeist(t *testing.T, user *locktest.Peer, eve *zk.Conn, g rightCell) *heist {
	t.Helper()
	parent := zkserver.Path(t)
	h := &heist{t: t, user: user, eve: eve, revoked: make(chan struct{})}
	h.acl = func(on string) []zk.ACL {
		acl := zk.DigestACL(zk.PermAll, "user", "secret")
		if on == g.on {
			acl = join(acl, zk.DigestACL(rights[g.right], "eve", "x"))
		}
		return acl
	}
	h.paths = map[string]string{
		onParent: parent, onPath: parent + "/lock", onCount: parent + "/count",
	}
	for _, on := range []string{onParent, onPath, onCount} {
		data := binary.BigEndian.AppendUint32(nil, 3)
		_, err := user.Conn.Create(h.paths[on], data, zk.FlagPersistent, h.acl(on))
		require.NoError(t, err)
	}
	h.lock = h.newLock(h.paths[onPath])
	ctx := locktest.Owner(t)
	require.NoError(t, h.lock.Acquire(ctx))
	t.Cleanup(func() { _ = h.lock.Release(ctx) }) // it may be lost
	h.lock.MakeRevocable(func() { close(h.revoked) })
	h.hold = h.lock.Hold(ctx)
	h.paths[onParticipant] = h.hold.Path()
	_, stat, err := user.Conn.Exists(h.hold.Path())
	require.NoError(t, err)
	require.Equal(t, user.Conn.SessionID(), stat.EphemeralOwner)
	return h
}

// done tells whether a request of the outsider's was done. If not, it is a refusal for
// lack of a right.
func (h *heist) done(err error) bool {
	h.t.Helper()
	if err != nil {
		require.True(h.t, errors.Is(err, zk.ErrNoAuth), "%v", err)
	}
	return err == nil
}

func (h *heist) list(on string) bool {
	_, _, err := h.eve.Children(h.paths[on])
	return h.done(err)
}

func (h *heist) read(on string) bool {
	_, _, err := h.eve.Get(h.paths[on])
	return h.done(err)
}

func (h *heist) write(on string, data []byte) bool {
	_, err := h.eve.Set(h.paths[on], data, -1)
	return h.done(err)
}

// heists are the words of the table, and whether that works.
var heists = map[string]func(h *heist) bool{
	"list the locks": func(h *heist) bool { return h.list(onParent) },
	"list the queue": func(h *heist) bool { return h.list(onPath) },
	"see the holder's data": func(h *heist) bool {
		return h.read(onParticipant)
	},
	"read the count": func(h *heist) bool { return h.read(onCount) },
	"change the count": func(h *heist) bool {
		return h.write(onCount, binary.BigEndian.AppendUint32(nil, 1<<20))
	},
	"delete the count": func(h *heist) bool {
		return h.done(h.eve.Delete(h.paths[onCount], -1))
	},
	"ask the holder to release": func(h *heist) bool {
		if !h.write(onParticipant, []byte("__REVOKE__")) {
			return false
		}
		locktest.Within(h.t, h.revoked, "the holder is not asked")
		return true
	},
	"remove the holder, who loses the lock": func(h *heist) bool {
		if !h.done(h.eve.Delete(h.hold.Path(), -1)) {
			require.NoError(h.t, h.hold.Err())
			return false
		}
		locktest.Within(h.t, h.hold.Lost(), "the lock is not lost")
		return true
	},
	"join the queue, and so hold the lock or block it": func(h *heist) bool {
		_, err := h.eve.Create(h.paths[onPath]+"/eve-lock-", nil,
			zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		joined := h.done(err)
		require.NoError(h.t, h.hold.Err(), "who holds the lock keeps it")
		ctx := locktest.Owner(h.t)
		h.leave()
		free, err := h.newLock(h.paths[onPath]).AcquireTimeout(ctx, 0)
		require.NoError(h.t, err)
		require.Equal(h.t, joined, !free, "%q", h.user.Children(h.paths[onPath]))
		return joined
	},
	"create the path of an unused lock, and so keep all others out": func(h *heist) bool {
		path := h.paths[onParent] + "/unused"
		_, err := h.eve.Create(path, nil, zk.FlagPersistent,
			zk.DigestACL(zk.PermAll, "eve", "x"))
		created := h.done(err)
		ctx := locktest.Owner(h.t)
		err = h.newLock(path).Acquire(ctx)
		if created {
			require.ErrorIs(h.t, err, zk.ErrNoAuth)
		} else {
			require.NoError(h.t, err)
		}
		return created
	},
	"delete the path of an idle lock": func(h *heist) bool {
		h.leave()
		return h.done(h.eve.Delete(h.paths[onPath], -1))
	},
	"give itself every right": func(h *heist) bool {
		taken := false
		for _, path := range h.paths {
			_, err := h.eve.SetACL(path, zk.DigestACL(zk.PermAll, "eve", "x"), -1)
			taken = h.done(err) || taken
		}
		return taken
	},
}

// leave ends the hold.
func (h *heist) leave() {
	require.NoError(h.t, h.user.Conn.Delete(h.hold.Path(), -1))
	locktest.Within(h.t, h.hold.Lost(), "the hold has not ended")
}

// Each cell is tried: what it says is possible, and nothing else is.
func TestWhoCanDoWhat(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range readRights(t) {
		seen[g.right+" on "+g.on] = true
		require.Contains(t, rights, g.right)
		for _, what := range g.can {
			require.Contains(t, heists, what)
		}
		zkserver.Run(t, g.right+" on "+g.on, func(t *testing.T) {
			user, eve := locktest.SharedPeer(t), locktest.SharedPeer(t)
			require.NoError(t, user.Conn.AddAuth("digest", []byte("user:secret")))
			require.NoError(t, eve.Conn.AddAuth("digest", []byte("eve:x")))
			var can []string
			for what, try := range heists {
				if h := newHeist(t, user, eve.Conn, g); try(h) {
					can = append(can, what)
				}
			}
			slices.Sort(can)
			slices.Sort(g.can)
			require.Equal(t, g.can, can)
		})
	}
	require.Len(t, seen, len(rights)*4, "a cell for each right on each znode")
}

// A server keeps the deletion of a znode from who may not read it. The holder learns of
// it at a reconnect, when it reads the znode itself.
func TestADeletionThatTheHolderMayNotSee(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		hold, err := recipes.Acquire(t.Context(), b.Lock)
		require.NoError(t, err)
		time.Sleep(time.Second) // its watch is set
		unread := zk.WorldACL(zk.PermAll &^ zk.PermRead)
		_, err = b.Other.Unwrap().SetACL(hold.Path(), unread, -1)
		require.NoError(t, err)
		require.NoError(t, b.Other.Delete(hold.Path(), -1))
		time.Sleep(time.Hour)
		require.NoError(t, hold.Err(), "docs/security.md says too little")
		b.Cluster.Link("ours").Reset()
		time.Sleep(time.Minute)
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
	})
}
