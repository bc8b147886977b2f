package registration_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
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

func TestSetDataCountsNowAndLater(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n := newNode(t, b.Ours, "one")
		require.NoError(t, n.SetData(t.Context(), []byte("two")), "before Start")
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "two")
		hold := n.Hold()
		for i := range 10 {
			data := fmt.Sprint("number ", i)
			require.NoError(t, n.SetData(t.Context(), []byte(data)))
			requireOwn(t, b.Other, b.Ours, data)
		}
		require.NoError(t, n.SetData(t.Context(), nil))
		requireOwn(t, b.Other, b.Ours, "")
		require.NoError(t, n.SetData(t.Context(), []byte("last")))
		require.Same(t, hold, n.Hold(), "it is the same znode")

		require.True(t, b.Cluster.ExpireSession(b.Ours.SessionID()))
		<-hold.Lost()
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "last")
		require.NoError(t, n.Close(t.Context()))
		requireNone(t, b.Other)
	})
}

// The last one wins, although the session ends meanwhile.
func TestTheLastDataWinOverSessions(t *testing.T) {
	for name, outage := range map[string]func(b *locktest.Bubble){
		"an outage": func(b *locktest.Bubble) {
			b.Cluster.Link("ours").Stall(zktest.Both)
			time.Sleep(time.Minute)
			b.Cluster.Link("ours").Heal()
		},
		"a break": func(b *locktest.Bubble) { b.Cluster.Link("ours").Reset() },
		"an end": func(b *locktest.Bubble) {
			b.Cluster.ExpireSession(b.Ours.SessionID())
		},
		"a lost answer": func(b *locktest.Bubble) {
			b.Cluster.Link("ours").LoseReply(opSet)
		},
		"a lost request": func(b *locktest.Bubble) {
			b.Cluster.Link("ours").LoseRequest(opSet)
		},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			n, _ := kept(t, b.Ours, "first")
			for round := range 5 {
				outage(b)
				for i := range 20 {
					data := fmt.Sprint(round, " ", i)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					err := n.SetData(ctx, []byte(data))
					cancel()
					if err != nil {
						require.ErrorIs(t, err, context.DeadlineExceeded)
						require.ErrorContains(t, err, "in the background")
					}
				}
				last := fmt.Sprint(round, " last")
				require.NoError(t, n.SetData(t.Context(), []byte(last)))
				requireOwn(t, b.Other, b.Ours, last)
				time.Sleep(time.Minute)
				requireOwn(t, b.Other, b.Ours, last)
			}
		})
	}
}

const opSet = zktest.OpSet

// What others have set is overwritten by the next SetData, and not before.
func TestDataThatOthersSet(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, hold := kept(t, b.Ours, "one")
		for i := range 3 {
			_, err := b.Other.Set(path, []byte("theirs"), -1)
			require.NoError(t, err)
			data := fmt.Sprint("ours ", i)
			require.NoError(t, n.SetData(t.Context(), []byte(data)))
			requireOwn(t, b.Other, b.Ours, data)
		}
		time.Sleep(time.Minute)
		_, err := b.Other.Set(path, []byte("theirs"), -1)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		requireOwn(t, b.Other, b.Ours, "theirs")
		require.NoError(t, hold.Err())
		_, err = hold.Multi()
		require.NoError(t, err)
		require.NoError(t, n.Close(t.Context()))
		requireNone(t, b.Other)
	})
}

// Another's znode has the name by now: its data are not touched.
func TestSetDataDoesNotTouchAnothersZnode(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, _ := kept(t, b.Ours, "one")
		require.NoError(t, n.SetData(t.Context(), []byte("two")))
		b.Cluster.Link("ours").Stall(zktest.Both)
		require.NoError(t, b.Other.Delete(path, -1))
		create(t, b.Other, "theirs")
		set := locktest.Start(func() error {
			return n.SetData(t.Context(), []byte("three"))
		})
		time.Sleep(time.Second)
		b.Cluster.Link("ours").Heal()
		time.Sleep(10 * time.Second)
		requireOwn(t, b.Other, b.Other, "theirs")
		require.Empty(t, set)
		require.NoError(t, b.Other.Delete(path, -1))
		require.NoError(t, <-set)
		requireOwn(t, b.Other, b.Ours, "three")
	})
}

func TestMultiWritesOnlyWhileTheZnodeExists(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		mkdir(t, b.Other, "/out")
		n, hold := kept(t, b.Ours, "one")
		write := func(data string) error {
			_, err := hold.Multi(&zk.SetDataRequest{
				Path: "/out", Data: []byte(data), Version: -1,
			})
			return err
		}
		require.NoError(t, write("one"))
		require.NoError(t, n.SetData(t.Context(), []byte("two")))
		require.NoError(t, write("two"))

		b.Cluster.Link("ours").Stall(zktest.ToClient)
		require.NoError(t, b.Other.Delete(path, -1))
		create(t, b.Other, "theirs")
		written := locktest.Start(func() error { return write("three") })
		time.Sleep(time.Second)
		b.Cluster.Link("ours").Heal()
		require.Error(t, <-written)
		time.Sleep(time.Second)
		require.ErrorIs(t, write("three"), recipes.ErrLockLost)
		data, _, err := b.Other.Get("/out")
		require.NoError(t, err)
		require.Equal(t, "two", string(data))
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost)
	})
}

func TestTheCheckOfAZnode(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, hold := kept(t, b.Ours, "one")
		require.NoError(t, n.SetData(t.Context(), []byte("two")))
		require.Equal(t, &zk.CheckVersionRequest{Path: path, Version: 1}, hold.CheckOp())
		_, err := b.Ours.Multi(hold.CheckOp())
		require.NoError(t, err)
		require.NoError(t, n.Close(t.Context()))
		_, err = hold.Multi()
		require.ErrorIs(t, err, recipes.ErrNotOwner)
	})
}

// Another's znode can have the same version: a check that is made after the loss fails.
func TestTheCheckOfALostZnode(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		_, hold := kept(t, b.Ours, "one")
		_, err := b.Other.Multi(&zk.DeleteRequest{Path: path, Version: -1},
			&zk.CreateRequest{
				Path: path, Flags: zk.FlagEphemeral, Acl: zk.WorldACL(zk.PermAll),
			})
		require.NoError(t, err)
		<-hold.Lost()
		_, err = b.Ours.Multi(hold.CheckOp())
		require.ErrorIs(t, err, zk.ErrBadVersion)
		_, err = hold.Multi()
		require.ErrorIs(t, err, recipes.ErrLockLost)
	})
}

func TestTheCostOfAZnode(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ours, tap := tapped(t, b)
		mkdir(t, b.Other)
		n := newNode(t, ours, "one")
		require.Empty(t, asked(tap))
		require.NoError(t, n.Await(t.Context()))
		require.Equal(t, []wiretap.Op{wiretap.Create, wiretap.GetData}, asked(tap))
		tap.Reset()
		time.Sleep(time.Hour)
		require.Empty(t, asked(tap), "an idle one asks for nothing")
		require.NoError(t, n.Await(t.Context()))
		require.Empty(t, asked(tap))
		require.NoError(t, n.SetData(t.Context(), []byte("two")))
		time.Sleep(time.Minute)
		require.Equal(t, []wiretap.Op{wiretap.SetData, wiretap.GetData}, asked(tap),
			"the watch is set again")
		tap.Reset()
		require.NoError(t, n.Close(t.Context()))
		require.Equal(t, []wiretap.Op{wiretap.Sync, wiretap.GetData, wiretap.Delete},
			asked(tap))
	})
}

func TestTheEventsOfAZnode(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var r locktest.Recorder
		mkdir(t, b.Other)
		create(t, b.Other, "theirs")
		n := newNode(t, b.Ours, "one", recipes.WithObserver(r.Observe))
		n.Start()
		time.Sleep(time.Second)
		require.NoError(t, b.Other.Delete(path, -1))
		require.NoError(t, n.Await(t.Context()))
		b.Lose(t, n.Hold())
		require.NoError(t, n.Await(t.Context()))
		time.Sleep(time.Second)
		require.NoError(t, n.Close(t.Context()))
		require.Equal(t, []string{
			"1 queued", "1 acquired", "1 lost", "2 acquired", "2 released",
		}, told(&r))
	})
}

// An observer that fails keeps no znode from coming back.
func TestAnObserverThatFails(t *testing.T) {
	for name, fail := range map[string]func(){
		"panic": func() { panic("no") }, "exit": runtime.Goexit,
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			var log journal
			n, hold := kept(t, b.Ours, "one", log.option(), recipes.WithObserver(
				func(_ context.Context, e recipes.Event) {
					if e.Kind == recipes.EventAcquired {
						fail()
					}
				}))
			require.Contains(t, log.String(), "observer failed")
			b.Lose(t, hold)
			require.NoError(t, n.Await(t.Context()))
			requireOwn(t, b.Other, b.Ours, "one")
			require.NoError(t, n.Close(t.Context()))
		})
	}
}

func TestOptionsOfLocksAreRefused(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		for name, opt := range map[string]recipes.Option{
			"WithData":       recipes.WithData(nil),
			"WithLossMargin": recipes.WithLossMargin(0),
			"WithMaxHold":    recipes.WithMaxHold(time.Second),
			"WithNames":      recipes.WithNames("__lock__"),
			"WithCaching":    recipes.WithCaching(time.Second, 1),
		} {
			_, err := recipes.NewPersistentNode(b.Ours, path, nil, opt)
			require.ErrorContains(t, err,
				"recipes: NewPersistentNode /services/api: "+name)
			_, err = recipes.NewGroupMember(b.Ours, "/services", "api", nil, opt)
			require.ErrorContains(t, err, name)
		}
		for _, bad := range []string{"", "api", "/", "/a/../b"} {
			_, err := recipes.NewPersistentNode(b.Ours, bad, nil)
			require.Error(t, err, bad)
		}
		_, err := recipes.NewPersistentNode(nil, path, nil)
		require.ErrorContains(t, err, "conn is nil")
		_, err = recipes.NewPersistentNode(b.Ours, path, make([]byte, 1<<20))
		require.ErrorContains(t, err, "exceed the maximum")
		n := newNode(t, b.Ours, "one")
		require.ErrorContains(t, n.SetData(t.Context(), make([]byte, 1<<20)),
			"exceed the maximum")
	})
}

func TestValuesThatNoConstructorMade(t *testing.T) {
	t.Parallel()
	var nobody *recipes.PersistentNode
	var none *recipes.GroupMember
	for _, n := range []interface {
		Start()
		Await(ctx context.Context) error
		Hold() *recipes.Hold
		SetData(ctx context.Context, data []byte) error
		Path() string
		Close(ctx context.Context) error
	}{nobody, new(recipes.PersistentNode), none, new(recipes.GroupMember)} {
		n.Start()
		require.Nil(t, n.Hold())
		require.Empty(t, n.Path())
		for _, err := range []error{
			n.Await(t.Context()), n.SetData(t.Context(), nil), n.Close(t.Context()),
		} {
			require.ErrorContains(t, err, "zero value")
		}
	}
	require.Empty(t, none.ID())
}

// The data that a caller changes later, and what it is given, are its own.
func TestDataAreCopied(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		data := []byte("one")
		n, err := recipes.NewPersistentNode(b.Ours, path, data)
		require.NoError(t, err)
		data[0] = 'X'
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "one")
		data = []byte("two")
		require.NoError(t, n.SetData(t.Context(), data))
		data[0] = 'X'
		b.Lose(t, n.Hold())
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, b.Ours, "two")
		require.NoError(t, n.Close(t.Context()))
	})
}

func TestAccessIsAsWithACLSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		ours := locktest.ConnectThrough(t, c, "ours")
		require.NoError(t, ours.Unwrap().AddAuth("digest", []byte("app:secret")))
		acl := zk.DigestACL(zk.PermAll, "app", "secret")
		n, _ := kept(t, ours, "one", recipes.WithACL(acl))
		got, _, err := ours.GetACL(path)
		require.NoError(t, err)
		require.Equal(t, acl, got)
		require.NoError(t, n.SetData(t.Context(), []byte("two")))
		require.NoError(t, n.Close(t.Context()))
	})
}

func TestTheChrootIsInFront(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		other := locktest.ConnectThrough(t, c, "other")
		ours := locktest.Connect(t, c.Link("ours"), c.Names()[0]+"/app", 10*time.Second)
		n, hold := kept(t, ours, "one")
		_, stat, err := other.Get("/app" + path)
		require.NoError(t, err)
		require.Equal(t, ours.SessionID(), stat.EphemeralOwner)
		require.Equal(t, "/app"+path, hold.CheckOp().Path)
		_, err = other.Multi(&zk.DeleteRequest{Path: "/app" + path, Version: -1},
			&zk.DeleteRequest{Path: "/app/services", Version: -1},
			&zk.DeleteRequest{Path: "/app", Version: -1})
		require.NoError(t, err)
		<-hold.Lost()
		require.NoError(t, n.Await(t.Context()))
		_, _, err = other.Get("/app" + path)
		require.NoError(t, err)
	})
}

func TestPlainConnections(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		bare := locktest.ConnectBare(t, b.Cluster.Link("bare"), b.Cluster.Names()[0],
			10*time.Second)
		n, hold := kept(t, bare, "one", recipes.WithSessionTimeout(10*time.Second))
		require.NoError(t, n.SetData(t.Context(), []byte("two")))
		b.Lose(t, hold)
		require.NoError(t, n.Await(t.Context()))
		requireOwn(t, b.Other, bare, "two")
		require.NoError(t, n.Close(t.Context()))
		requireNone(t, b.Other)
	})
}

// A znode whose delete is refused is taken over, with the data that were set meanwhile.
func TestAZnodeThatCannotBeDeleted(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		_, err := b.Other.Create(
			"/services", nil, 0, zk.WorldACL(zk.PermRead|zk.PermCreate),
		)
		require.NoError(t, err)
		n, hold := kept(t, b.Ours, "one")
		require.NoError(t, n.SetData(t.Context(), []byte("two")))
		session := b.Ours.SessionID()
		b.Cluster.Link("ours").Stall(zktest.Both)
		<-hold.Lost()
		set := locktest.Start(func() error {
			return n.SetData(t.Context(), []byte("three"))
		})
		time.Sleep(time.Millisecond)
		b.Cluster.Link("ours").Heal()
		require.NoError(t, <-set)
		require.Equal(t, session, b.Ours.SessionID())
		requireOwn(t, b.Other, b.Ours, "three")
		require.NoError(t, n.Await(t.Context()))
		require.ErrorIs(t, n.Close(t.Context()), zk.ErrNoAuth)
	})
}

// Another has set data that are too long to be read: they are not treated as none.
func TestEmptyDataOverDataThatAreTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		link := cluster.Link("ours")
		ours, err := recipes.Connect(t.Context(), strings.Join(cluster.Names(), ","),
			10*time.Second, recipes.WithDialer(link.Dial), recipes.WithMaxReply(4096))
		require.NoError(t, err)
		t.Cleanup(func() {
			ours.Close()
			time.Sleep(time.Minute)
		})
		other := locktest.ConnectThrough(t, cluster, "other")
		n, _ := kept(t, ours, "a")
		time.Sleep(time.Second)
		link.Stall(zktest.ToClient)
		_, err = other.Set(path, bytes.Repeat([]byte("x"), 8192), -1)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() { done <- n.SetData(t.Context(), nil) }()
		time.Sleep(100 * time.Millisecond)
		link.Heal()
		err = <-done
		data, _ := read(t, other)
		if err == nil {
			require.Empty(t, data)
		}
	})
}

// Close asks the ctxs of the user's without the mutex that Hold needs.
func TestCloseUnderAParentThatAsksForTheHold(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		n, err := recipes.NewPersistentNode(b.Ours, "/p", nil)
		require.NoError(t, err)
		require.NoError(t, n.Await(t.Context()))
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := n.Hold().Context(nosyOfNode{parent, n})
		closed := locktest.Start(func() error { return n.Close(t.Context()) })
		require.NoError(t, <-closed)
		<-ctx.Done()
	})
}

type nosyOfNode struct {
	context.Context
	node *recipes.PersistentNode
}

func (c nosyOfNode) Value(key any) any {
	c.node.Hold()
	return c.Context.Value(key)
}
