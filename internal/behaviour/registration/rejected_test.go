package registration_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// allow gives everybody those rights, and no others.
func allow(t *testing.T, c *recipes.Client, path string, perms int32) {
	t.Helper()
	_, err := c.Unwrap().SetACL(path, zk.WorldACL(perms), -1)
	require.NoError(t, err)
}

// A permission that is missing for a moment, just when the session has ended, took the
// znode away for good. It comes back with the permission, by no call.
func TestAZnodeThatIsRejectedComesBack(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var log journal
		n := newNode(t, b.Ours, "one", log.option())
		require.NoError(t, n.Await(t.Context()))
		const beside = "/services/beside" // so that the parent is not reaped
		_, err := b.Other.Create(beside, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		allow(t, b.Other, "/services", zk.PermAll&^zk.PermCreate)
		require.True(t, b.Cluster.ExpireSession(b.Ours.SessionID()))
		time.Sleep(10 * time.Minute)
		require.Contains(t, log.String(), "is still being created")
		require.ErrorIs(t, n.Await(t.Context()), zk.ErrNoAuth)
		require.Nil(t, n.Hold())

		allow(t, b.Other, "/services", zk.PermAll)
		time.Sleep(30 * time.Second)
		requireOwn(t, b.Other, b.Ours, "one")
		require.NoError(t, n.Await(t.Context()))
		require.NoError(t, n.Hold().Err())

		allow(t, b.Other, "/services", zk.PermAll&^zk.PermCreate)
		require.True(t, b.Cluster.ExpireSession(b.Ours.SessionID()))
		time.Sleep(time.Minute)
		require.NoError(t, n.Close(t.Context()))
		allow(t, b.Other, "/services", zk.PermAll)
		time.Sleep(10 * time.Minute)
		require.Equal(t, []string{"/services", beside}, b.Cluster.Znodes())
	})
}

// SetData said that the znode has data which it never got.
func TestDataThatAreRejected(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, hold := kept(t, b.Ours, "one")
		allow(t, b.Other, path, zk.PermAll&^zk.PermWrite)
		err := n.SetData(t.Context(), []byte("two"))
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, "recipes: set data of /services/api: ")
		require.ErrorContains(t, err, "lacks WRITE on "+path)
		require.NotContains(t, err.Error(), "in the background")
		requireOwn(t, b.Other, b.Ours, "one")
		require.NoError(t, hold.Err())

		require.NoError(t, b.Other.Delete(path, -1))
		time.Sleep(time.Second)
		requireOwn(t, b.Other, b.Ours, "two")
		require.NoError(t, n.SetData(t.Context(), []byte("three")))
		requireOwn(t, b.Other, b.Ours, "three")
		require.NoError(t, n.Close(t.Context()))
	})
}

// SetData said that a znode has the data although no znode was to come.
func TestDataOfAZnodeThatIsGivenUp(t *testing.T) {
	data := []byte("two")
	locktest.Run(t, "closed before", func(t *testing.T, b *locktest.Bubble) {
		n, _ := kept(t, b.Ours, "one")
		b.Ours.Close()
		require.ErrorIs(t, n.SetData(t.Context(), data), zk.ErrConnectionClosed)
		require.NoError(t, n.Close(t.Context()))
	})
	locktest.Run(t, "closed meanwhile", func(t *testing.T, b *locktest.Bubble) {
		n, _ := kept(t, b.Ours, "one")
		b.Cluster.Link("ours").Stall(zktest.Both)
		set := locktest.Start(func() error { return n.SetData(t.Context(), data) })
		time.Sleep(time.Second)
		b.Ours.Close()
		require.ErrorIs(t, <-set, zk.ErrConnectionClosed)
	})
	locktest.Run(t, "rejected", func(t *testing.T, b *locktest.Bubble) {
		mkdir(t, b.Other)
		allow(t, b.Other, "/services", zk.PermAll&^zk.PermCreate)
		b.Cluster.Link("ours").Delay(time.Second, time.Second)
		n := newNode(t, b.Ours, "one")
		n.Start()
		require.ErrorIs(t, n.SetData(t.Context(), data), zk.ErrNoAuth)

		allow(t, b.Other, "/services", zk.PermAll)
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "two")
	})
}

// lostUndeletable returns a node whose hold is lost while its link stands still, and
// whose znode nobody may delete. The session survives if the link heals now.
func lostUndeletable(
	t *testing.T, b *locktest.Bubble,
) (n *recipes.PersistentNode, lost *recipes.Hold, session int64) {
	t.Helper()
	n, lost = kept(t, b.Ours, "one")
	session = b.Ours.SessionID()
	allow(t, b.Other, "/services", zk.PermAll&^zk.PermDelete)
	b.Cluster.Link("ours").Stall(zktest.Both)
	<-lost.Lost()
	return n, lost, session
}

// A delete that is rejected goes on in the background, behind the next znode. Once it had
// ended, the loss of that one went unnoticed: nobody looked after its session.
func TestTheNextZnodeAfterADeleteThatIsRejected(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, _, session := lostUndeletable(t, b)
		b.Cluster.Link("ours").Heal()
		require.NoError(t, n.Await(t.Context()))
		require.Equal(t, session, b.Ours.SessionID(), "it did not survive")
		second := n.Hold()
		allow(t, b.Other, "/services", zk.PermAll)
		require.NoError(t, b.Other.Delete(path, -1))
		<-second.Lost()
		require.NoError(t, n.Await(t.Context()))
		time.Sleep(5 * time.Minute)
		requireOwn(t, b.Other, b.Ours, "one")

		third := n.Hold()
		require.NoError(t, third.Err())
		b.Cluster.Link("ours").Stall(zktest.Both)
		began := time.Now()
		select {
		case <-third.Lost():
			require.Less(t, time.Since(began), 10*time.Second)
		case <-time.After(time.Minute):
			require.Fail(t, "the loss goes unnoticed")
		}
	})
}

// The znode whose delete was rejected is the next one's, if the session has survived: it
// is not deleted any more, and lost again, once it may be. It gets the data that was set
// meanwhile.
func TestAZnodeWhoseDeleteWasRejectedIsKept(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, first, session := lostUndeletable(t, b)
		set := locktest.Start(func() error {
			return n.SetData(t.Context(), []byte("two"))
		})
		time.Sleep(time.Millisecond)
		b.Cluster.Link("ours").Heal()
		require.NoError(t, n.Await(t.Context()))
		require.Equal(t, session, b.Ours.SessionID(), "it did not survive")
		second := n.Hold()
		require.NotSame(t, first, second)
		require.NoError(t, <-set)
		requireOwn(t, b.Other, b.Ours, "two")

		allow(t, b.Other, "/services", zk.PermAll)
		time.Sleep(5 * time.Minute)
		require.NoError(t, second.Err())
		requireOwn(t, b.Other, b.Ours, "two")
		require.NoError(t, n.Close(t.Context()))
		requireNone(t, b.Other)
	})
}

// A delete that is rejected goes on in the background, also after Close, which gives the
// name to the next value of this process. The czxid of a znode that was never held was
// not known, so the delete took the next value's for it.
func TestARejectedDeleteSparesTheNextValue(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		mkdir(t, b.Other)
		allow(t, b.Other, "/services", zk.PermAll&^zk.PermDelete)
		b.Cluster.Link("ours").Delay(100*time.Millisecond, 100*time.Millisecond)
		first := newNode(t, b.Ours, "one")
		first.Start()
		time.Sleep(120 * time.Millisecond) // the create is done, and not answered yet
		require.ErrorIs(t, first.Close(t.Context()), zk.ErrNoAuth)
		b.Cluster.Link("ours").Heal()
		requireOwn(t, b.Other, b.Ours, "one")
		second := newNode(t, b.Ours, "two")
		second.Start()
		time.Sleep(3 * time.Second)
		allow(t, b.Other, "/services", zk.PermAll)
		require.NoError(t, b.Other.Delete(path, -1))
		require.NoError(t, second.Await(t.Context()))
		hold := second.Hold()
		time.Sleep(2 * time.Minute)
		require.NoError(t, hold.Err())
	})
}

// The permission comes back while the next hold takes the znode over, so the delete is
// tried between the reads of both.
func TestAZnodeIsKeptWhileARejectedDeleteIsTried(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, _, session := lostUndeletable(t, b)
		b.Cluster.Link("ours").Heal()
		b.Cluster.Link("ours").Delay(300*time.Millisecond, 300*time.Millisecond)
		time.Sleep(2500 * time.Millisecond)
		allow(t, b.Other, "/services", zk.PermAll)
		require.NoError(t, n.Await(t.Context()))
		require.Equal(t, session, b.Ours.SessionID(), "it did not survive")
		hold := n.Hold()
		time.Sleep(time.Minute)
		require.NoError(t, hold.Err())
	})
}
