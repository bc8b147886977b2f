package registration_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

func TestAZnodeIsThereFromAwaitToClose(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n := newNode(t, b.Ours, "10.0.0.1:80")
		require.Equal(t, path, n.Path())
		require.Nil(t, n.Hold())
		time.Sleep(time.Minute)
		requireNone(t, b.Other)

		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "10.0.0.1:80")
		hold := n.Hold()
		_, stat := read(t, b.Other)
		require.Equal(t, path, hold.Path())
		require.Equal(t, stat.Czxid, hold.FencingToken())
		require.NoError(t, n.Await(t.Context()))
		require.Same(t, hold, n.Hold())
		require.ErrorIs(t, hold.Release(t.Context()), recipes.ErrNotOwner)
		time.Sleep(time.Hour)
		require.NoError(t, hold.Err())
		work := hold.Context(t.Context())

		require.NoError(t, n.Close(t.Context()))
		requireNone(t, b.Other)
		require.Nil(t, n.Hold())
		require.NoError(t, hold.Err(), "to close is no loss")
		require.ErrorIs(t, context.Cause(work), recipes.ErrNotOwner)
		require.NoError(t, n.Close(t.Context()))
		require.ErrorContains(t, n.Await(t.Context()), "closed")
		require.Error(t, n.SetData(t.Context(), nil))
		n.Start()
		time.Sleep(time.Minute)
		requireNone(t, b.Other)
	})
}

func TestStartDoesNotWait(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		b.Cluster.Link("ours").Stall(zktest.Both)
		n := newNode(t, b.Ours, "one")
		n.Start()
		n.Start()
		time.Sleep(time.Minute)
		require.Nil(t, n.Hold())
		b.Cluster.Link("ours").Heal()
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "one")
	})
}

func TestAZnodeComesBackInTheNextSession(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, first := kept(t, b.Ours, "one")
		session := b.Ours.SessionID()
		b.Cluster.Link("ours").Stall(zktest.Both)
		began := time.Now()
		<-first.Lost()
		require.Less(t, time.Since(began), 10*time.Second, "the servers could delete it")
		_, stat := read(t, b.Other)
		require.NotNil(t, stat, "it is lost before it is gone")
		require.Nil(t, n.Hold())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := n.Await(ctx)
		require.ErrorIs(t, err, recipes.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)

		time.Sleep(time.Minute)
		requireNone(t, b.Other)
		b.Cluster.Link("ours").Heal()
		time.Sleep(5 * time.Second)
		requireOwn(t, b.Other, b.Ours, "one")
		require.NotEqual(t, session, b.Ours.SessionID())
		second := n.Hold()
		require.Greater(t, second.FencingToken(), first.FencingToken())

		require.True(t, b.Cluster.ExpireSession(b.Ours.SessionID()))
		<-second.Lost()
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "one")
		require.Greater(t, n.Hold().FencingToken(), second.FencingToken())
	})
}

// A znode that was given up since the session could not be relied on is not counted as
// there when the session turns out to have survived.
func TestASessionThatSurvivesItsLoss(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, first := kept(t, b.Ours, "one")
		session := b.Ours.SessionID()
		b.Cluster.Link("ours").Stall(zktest.Both)
		<-first.Lost()
		b.Cluster.Link("ours").Heal()
		require.NoError(t, n.Await(t.Context()))
		require.Equal(t, session, b.Ours.SessionID(), "it did not survive")
		requireOwn(t, b.Other, b.Ours, "one")
		require.Greater(t, n.Hold().FencingToken(), first.FencingToken())
		time.Sleep(time.Minute)
		requireOwn(t, b.Other, b.Ours, "one")
	})
}

// kratos#2235: a znode of the session that is dying counts as registered, and
// vanishes for good. On ClickHouse Keeper every reconnect leaves one behind.
func TestAZnodeOfADyingSessionIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t, zktest.WithKeeper())
		ours := locktest.ConnectThrough(t, c, "ours")
		other := locktest.ConnectThrough(t, c, "other")
		n, first := kept(t, ours, "one")
		for range 3 {
			session := ours.SessionID()
			c.Link("ours").Reset()
			<-first.Lost()
			began := time.Now()
			require.NoError(t, n.Await(t.Context()))
			require.Less(t, time.Since(began), 3*time.Second)
			require.NotEqual(t, session, ours.SessionID())
			requireOwn(t, other, ours, "one")
			require.Greater(t, n.Hold().FencingToken(), first.FencingToken())
			first = n.Hold()
		}
		time.Sleep(time.Minute) // the former sessions end
		require.NoError(t, first.Err())
		requireOwn(t, other, ours, "one")
		c.Link("ours").Reset()
		<-first.Lost()
		require.NoError(t, n.Close(t.Context()))
		requireNone(t, other)
	})
}

// The reply to the create is lost: the znode is found and kept, whatever the session does
// meanwhile.
func TestALostReplyToTheCreateIsFoundOut(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{
		"ZooKeeper": nil, "Keeper": {zktest.WithKeeper()},
	} {
		locktest.RunVirtual(t, name, func(t *testing.T) {
			c := zktest.Start(t, opts...)
			ours := locktest.ConnectThrough(t, c, "ours")
			other := locktest.ConnectThrough(t, c, "other")
			mkdir(t, other)
			c.Link("ours").LoseReply(zktest.OpCreate)
			began := time.Now()
			n, hold := kept(t, ours, "one")
			require.Less(t, time.Since(began), 10*time.Second)
			requireOwn(t, other, ours, "one")
			time.Sleep(time.Minute)
			require.NoError(t, hold.Err())
			requireOwn(t, other, ours, "one")
			require.NoError(t, n.Close(t.Context()))
			requireNone(t, other)
		})
	}
}

func TestAnothersZnodeIsWaitedFor(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, tap := tapped(t, b)
		mkdir(t, b.Other)
		create(t, b.Other, "theirs")
		n := newNode(t, ours, "ours")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := n.Await(ctx)
		require.ErrorIs(t, err, recipes.ErrBusy)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, recipes.ErrUnavailable)
		var busy *recipes.BusyError
		require.ErrorAs(t, err, &busy)
		require.Equal(t, recipes.BusyError{Path: path, Behind: path, Ahead: 1}, *busy)
		require.ErrorContains(t, err, "theirs")
		require.Contains(t, err.Error(), sessionText(b.Other.SessionID()))
		require.Nil(t, n.Hold())
		require.Equal(t, []wiretap.Op{wiretap.Create, wiretap.GetData}, asked(tap))

		tap.Reset()
		time.Sleep(25 * time.Second)
		require.Empty(t, asked(tap), "it polls")
		time.Sleep(time.Hour)
		requireOwn(t, b.Ours, b.Other, "theirs")

		require.NoError(t, b.Other.Delete(path, -1))
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, ours, "ours")
	})
}

// A persistent znode never ends.
func TestAPersistentZnodeIsAPermanentError(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		mkdir(t, b.Other, path)
		var log journal
		n := newNode(t, b.Ours, "one", log.option())
		err := n.Await(t.Context())
		require.ErrorIs(t, err, zk.ErrNodeExists)
		require.NotErrorIs(t, err, recipes.ErrBusy)
		require.ErrorContains(t, err, "not ephemeral")
		require.Contains(t, log.String(), "not ephemeral")
		require.NoError(t, b.Other.Delete(path, -1))
		require.NoError(t, n.Await(t.Context()), "it begins again")
		requireOwn(t, b.Other, b.Ours, "one")
	})
}

func TestAMissingPermissionIsAPermanentError(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		_, err := b.Other.Create("/services", nil, 0, zk.WorldACL(zk.PermRead))
		require.NoError(t, err)
		var log journal
		n := newNode(t, b.Ours, "one", log.option())
		n.Start()
		time.Sleep(time.Second)
		require.Contains(t, log.String(), "lacks CREATE")
		require.ErrorIs(t, n.Await(t.Context()), zk.ErrNoAuth)
		require.NoError(t, n.Close(t.Context()))
	})
}

// Of two values for one path through one connection the znodes would be of one session.
func TestASecondValueIsAnothers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		first, _ := kept(t, b.Ours, "same")
		second := newNode(t, b.Ours, "same")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		b.Cluster.Link("ours").LoseReply(zktest.OpCreate)
		err := second.Await(ctx)
		require.ErrorIs(t, err, recipes.ErrBusy)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		require.ErrorContains(t, err, sessionText(b.Ours.SessionID()))
		require.ErrorContains(t, err, "same")

		require.True(t, b.Cluster.ExpireSession(b.Ours.SessionID()))
		time.Sleep(time.Minute)
		require.NotNil(t, first.Hold())
		require.Nil(t, second.Hold())
		require.NoError(t, first.Close(t.Context()))
		require.NoError(t, second.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "same")
	})
}

// What the program itself has created with the same session is not this value's, either,
// also where the reply to the create is lost.
func TestAZnodeOfTheSameSessionIsAnothers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		mkdir(t, b.Other)
		create(t, b.Ours, "by hand")
		b.Cluster.Link("ours").LoseReply(zktest.OpCreate)
		n := newNode(t, b.Ours, "ours")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		require.ErrorIs(t, n.Await(ctx), recipes.ErrBusy)
		require.NoError(t, n.Close(t.Context()))
		requireOwn(t, b.Other, b.Ours, "by hand")
	})
}

func TestADeletedZnodeIsCreatedAgainAtOnce(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, hold := kept(t, b.Ours, "one")
		time.Sleep(time.Minute)
		b.Lose(t, hold)
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
		began := time.Now()
		require.NoError(t, n.Await(t.Context()))
		require.Less(t, time.Since(began), 100*time.Millisecond)
		requireOwn(t, b.Other, b.Ours, "one")
		time.Sleep(time.Minute)

		_, err := b.Other.Multi(&zk.DeleteRequest{Path: path, Version: -1},
			&zk.DeleteRequest{Path: "/services", Version: -1})
		require.NoError(t, err)
		time.Sleep(time.Second)
		requireOwn(t, b.Other, b.Ours, "one")
	})
}

// Two programs that delete each other's znode send two requests a second each, and not
// thousands.
func TestAFightIsSlow(t *testing.T) {
	for name, parent := range map[string]bool{"the znode": false, "its parent": true} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			ours, tap := tapped(t, b)
			n, _ := kept(t, ours, "one")
			stop, stopped := context.WithCancel(t.Context())
			fight := locktest.Start(func() error {
				for ; stop.Err() == nil; time.Sleep(10 * time.Millisecond) {
					_ = b.Other.Delete(path, -1)
					if parent {
						_ = b.Other.Delete("/services", -1)
					}
				}
				return nil
			})
			time.Sleep(time.Minute)
			tap.Reset()
			time.Sleep(time.Minute)
			require.LessOrEqual(t, len(asked(tap)), 120, "%v", asked(tap)[:40])
			require.NotEmpty(t, asked(tap), "it gives up")
			stopped()
			require.NoError(t, <-fight)
			require.NoError(t, n.Await(t.Context()))
			requireOwn(t, b.Other, ours, "one")
		})
	}
}

// Another who creates and deletes the name all the time is waited for at the same pace.
func TestANameThatIsNeverFreeForLong(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, tap := tapped(t, b)
		mkdir(t, b.Other)
		create(t, b.Other, "theirs")
		n := newNode(t, ours, "one")
		n.Start()
		stop, stopped := context.WithCancel(t.Context())
		churn := locktest.Start(func() error {
			for ; stop.Err() == nil; time.Sleep(10 * time.Millisecond) {
				_, _ = b.Other.Multi(
					&zk.DeleteRequest{Path: path, Version: -1},
					&zk.CreateRequest{
						Path: path, Flags: zk.FlagEphemeral, Acl: zk.WorldACL(zk.PermAll),
					},
				)
			}
			return nil
		})
		time.Sleep(time.Minute)
		tap.Reset()
		time.Sleep(time.Minute)
		require.LessOrEqual(t, len(asked(tap)), 120)
		require.NotEmpty(t, asked(tap))
		stopped()
		require.NoError(t, <-churn)
		require.NoError(t, b.Other.Delete(path, -1))
		require.NoError(t, n.Await(t.Context()))
	})
}

// Another has taken the place of our znode while we could not know. It is never deleted.
func TestAnothersZnodeIsNeverDeleted(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, n *recipes.PersistentNode){
		"by Close": func(t *testing.T, n *recipes.PersistentNode) {
			t.Helper()
			err := n.Close(t.Context())
			require.True(t, err == nil || isLoss(err), "%v", err)
		},
		"by a loss": func(t *testing.T, n *recipes.PersistentNode) {
			t.Helper()
			time.Sleep(time.Minute)
			require.Nil(t, n.Hold())
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, outage := range []time.Duration{
				time.Second, 9500 * time.Millisecond, time.Minute,
			} {
				locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
					n, _ := kept(t, b.Ours, "ours")
					b.Cluster.Link("ours").Stall(zktest.Both)
					time.Sleep(outage)
					if _, stat := read(t, b.Other); stat != nil {
						require.NoError(t, b.Other.Delete(path, -1))
					}
					mkdirAgain(t, b.Other)
					create(t, b.Other, "theirs")
					ended := locktest.Start(func() error { end(t, n); return nil })
					time.Sleep(100 * time.Millisecond)
					b.Cluster.Link("ours").Heal()
					require.NoError(t, <-ended)
					time.Sleep(time.Minute)
					requireOwn(t, b.Other, b.Other, "theirs")
				})
			}
		})
	}
}

// kratos, dubbo-go: a registration comes back after it was taken back, in an outage or
// while it was being made.
func TestItNeverComesBackAfterClose(t *testing.T) {
	for _, outage := range []time.Duration{time.Second, time.Minute} {
		locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
			n, hold := kept(t, b.Ours, "one")
			b.Cluster.Link("ours").Stall(zktest.Both)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			err := n.Close(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "in the background")
			require.Nil(t, n.Hold())
			require.NoError(t, hold.Err())
			time.Sleep(outage)
			b.Cluster.Link("ours").Heal()
			time.Sleep(5 * time.Second)
			requireNone(t, b.Other)
			time.Sleep(time.Hour)
			requireNone(t, b.Other)
		})
	}
}

func TestCloseEndsACreateThatIsUnderWay(t *testing.T) {
	for _, d := range []zktest.Direction{zktest.ToServer, zktest.Both, zktest.ToClient} {
		locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
			mkdir(t, b.Other)
			n := newNode(t, b.Ours, "one")
			b.Cluster.Link("ours").Stall(d)
			waiting := locktest.Start(func() error { return n.Await(t.Context()) })
			time.Sleep(time.Second)
			closed := locktest.Start(func() error { return n.Close(t.Context()) })
			time.Sleep(100 * time.Millisecond)
			require.ErrorContains(t, <-waiting, "closed")
			require.Empty(t, closed, "the outcome is not known yet")
			b.Cluster.Link("ours").Heal()
			require.NoError(t, <-closed)
			requireNone(t, b.Other)
			time.Sleep(time.Hour)
			requireNone(t, b.Other)
		})
	}
}

func TestCloseAfterTheZnodeHasGone(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, _ := kept(t, b.Ours, "one")
		b.Cluster.Link("ours").Stall(zktest.ToClient)
		require.NoError(t, b.Other.Delete(path, -1))
		closed := locktest.Start(func() error { return n.Close(t.Context()) })
		time.Sleep(time.Second)
		b.Cluster.Link("ours").Heal()
		require.ErrorIs(t, <-closed, recipes.ErrLockLost)
		time.Sleep(time.Minute)
		requireNone(t, b.Other)
	})
}

// Where the parent of a ctx of Hold.Context panics at Close, the znode goes all the same.
func TestAParentThatPanicsAtClose(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, hold := kept(t, b.Ours, "one")
		broken := false
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := hold.Context(t.Context())
		_ = hold.Context(locktest.BrokenCtx{Context: parent, Broken: &broken})
		broken = true
		require.Panics(t, func() { _ = n.Close(t.Context()) })
		broken = false
		require.Error(t, first.Err())
		time.Sleep(time.Second)
		requireNone(t, b.Other)
		require.NoError(t, n.Close(t.Context()))
	})
}

func TestTheConnectionIsClosedFirst(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, hold := kept(t, b.Ours, "one")
		b.Ours.Close()
		<-hold.Lost()
		require.Nil(t, n.Hold())
		require.ErrorIs(t, n.Await(t.Context()), zk.ErrConnectionClosed)
		require.NoError(t, n.Close(t.Context()))
		requireNone(t, b.Other)
	})
}

func isLoss(err error) bool { return err != nil }

func mkdirAgain(t *testing.T, conn recipes.Conn) {
	t.Helper()
	_, err := conn.Create("/services", nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil {
		require.ErrorIs(t, err, zk.ErrNodeExists)
	}
}

// The watch's event is lost with the connection, and the znode that is read after that is
// another's.
func TestAnothersZnodeIsFoundAfterABreak(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, hold := kept(t, b.Ours, "ours")
		session := b.Ours.SessionID()
		b.Cluster.Link("ours").Cut()
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, b.Other.Delete(path, -1))
		create(t, b.Other, "theirs")
		b.Cluster.Link("ours").Heal()
		<-hold.Lost()
		require.ErrorIs(t, hold.Err(), recipes.ErrNodeDeleted)
		require.Equal(t, session, b.Ours.SessionID())
		time.Sleep(time.Minute)
		require.Nil(t, n.Hold())
		requireOwn(t, b.Other, b.Other, "theirs")
		require.NoError(t, b.Other.Delete(path, -1))
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "ours")
	})
}

// Who waits while others delete the znode again and again hears of them, and not that
// ZooKeeper does not answer.
func TestAwaitBetweenTheDeletesOfOthers(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, _ := kept(t, b.Ours, "one")
		for range 2 {
			require.NoError(t, b.Other.Delete(path, -1))
			time.Sleep(100 * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		err := n.Await(ctx)
		require.ErrorIs(t, err, recipes.ErrBusy)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, recipes.ErrUnavailable)
		require.NotErrorIs(t, err, zk.ErrNodeExists)
		require.ErrorContains(t, err, "others have deleted it")
		require.NoError(t, n.Await(t.Context()))
	})
}

// An acquisition whose EventAcquired took longer than Close waits never ended for the
// observer.
func TestAnObserverThatDelaysCloseIsToldOfTheRelease(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var events locktest.Recorder
		n := newNode(t, b.Ours, "one", recipes.WithObserver(
			func(ctx context.Context, e recipes.Event) {
				events.Observe(ctx, e)
				time.Sleep(10 * time.Second)
			}))
		n.Start()
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorContains(t, n.Close(ctx), "an observer delays it")
		time.Sleep(time.Minute)
		requireNone(t, b.Other)
		require.Equal(t, []string{"1 acquired", "1 released"}, told(&events))
	})
}

// The check names only a path and a version, which the next one's znode has, too.
func TestACheckAfterCloseNeverSucceeds(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, hold := kept(t, b.Ours, "one")
		require.NoError(t, n.Close(t.Context()))
		create(t, b.Other, "another's")
		_, err := b.Ours.Multi(hold.CheckOp(), &zk.CreateRequest{
			Path: "/done", Acl: zk.WorldACL(zk.PermAll),
		})
		require.ErrorIs(t, err, zk.ErrBadVersion)
	})
}

// Whoever watches the path itself, and is late to look, has the event of a znode that is
// gone while the next one stands. On a bare connection that ended the next one.
func TestALateEventOfAFormerZnode(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		bare := locktest.ConnectBare(t, b.Cluster.Link("bare"), b.Cluster.Names()[0],
			10*time.Second)
		n, _ := kept(t, bare, "one", recipes.WithSessionTimeout(10*time.Second))
		ctx, stop := context.WithCancel(t.Context())
		reader := locktest.Start(func() error {
			for _, err := range recipes.WatchMembers(ctx, bare, path) {
				if err != nil {
					return err
				}
				time.Sleep(5 * time.Second)
			}
			return nil
		})
		time.Sleep(time.Second)
		require.NoError(t, b.Other.Delete(path, -1))
		time.Sleep(time.Second)
		second := n.Hold()
		require.NotNil(t, second)
		time.Sleep(time.Minute)
		require.NoError(t, second.Err())
		stop()
		require.NoError(t, <-reader)
	})
}
