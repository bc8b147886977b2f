package registration_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/queuetest"
	"github.com/zkrecipes/recipes/internal/registration"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
	"github.com/zkrecipes/recipes/zktest"
)

func TestAKeeperKeepsItsZnode(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		k, o := kept(t, us, "data")
		requireOwn(t, other, us, "data")
		require.Equal(t, []string{"obtaining", "held"}, o.all())

		first := o.last()
		require.True(t, c.ExpireSession(us.SessionID()))
		<-first.Ended().Done()
		require.NoError(t, k.Await(bounded(t)))
		requireOwn(t, other, us, "data")
		require.Greater(t, o.last().Token(), first.Token())

		second := o.last()
		require.NoError(t, other.Delete(path, -1))
		<-second.Ended().Done()
		require.ErrorIs(t, second.Cause(), znode.ErrGone)
		require.NoError(t, k.Await(bounded(t)))
		requireOwn(t, other, us, "data")
		require.Equal(t, []string{
			"obtaining", "held", "obtaining", "held", "obtaining", "held",
		}, o.all())

		require.NoError(t, closeIt(bounded(t), k))
		requireNone(t, other)
		require.ErrorIs(t, k.Await(bounded(t)), registration.ErrClosed)
		require.ErrorIs(t, k.SetData(bounded(t), nil), registration.ErrClosed)
		k.Start()
		require.NoError(t, closeIt(bounded(t), k), "twice")
		time.Sleep(time.Hour)
		requireNone(t, other)
	})
}

// A Keeper that is closed uses its connection no more.
func TestAClosedKeeperLeavesItsConnection(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us := newPeer(t, c, "us")
		client := &counted{Conn: us.Conn}
		use := func() *zkconn.Conn {
			return zkconn.Use(client, zkconn.Config{
				Timeout: func() time.Duration { return queuetest.Timeout },
			})
		}
		us.S = use()
		k, _ := kept(t, us, "data")
		require.NoError(t, closeIt(bounded(t), k))
		us.S.Release()
		time.Sleep(time.Minute) // until it is forgotten
		again := use()
		defer again.Release()
		require.NotSame(t, us.S, again)
	})
}

func TestAKeeperThatWasNeverStartedIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us := newPeer(t, c, "us")
		k, o := newKeeper(t, us, "data")
		require.NoError(t, k.SetData(bounded(t), []byte("other")))
		require.NoError(t, closeIt(bounded(t), k))
		k.Start()
		time.Sleep(time.Hour)
		requireNone(t, us)
		require.Empty(t, o.all())
	})
}

// A Close comes at any time of a create: before it was sent, while it is under way, and
// while its answer is. Nothing is left, and nothing comes back.
func TestCloseRacesWithACreate(t *testing.T) {
	for step := range 60 {
		bubble(t, func(t *testing.T, c *zktest.Cluster) {
			us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
			mkdir(t, other)
			us.Link.Delay(10*time.Millisecond, 10*time.Millisecond)
			k, _ := newKeeper(t, us, "data")
			k.Start()
			time.Sleep(time.Duration(step) * time.Millisecond)
			require.NoError(t, closeIt(bounded(t), k), "after %d ms", step)
			requireNone(t, other)
			time.Sleep(time.Minute)
			requireNone(t, other)
		})
	}
}

// Neither does one that comes while nothing gets through, whatever had got through.
func TestCloseInAnOutageOfACreate(t *testing.T) {
	for _, d := range []zktest.Direction{zktest.ToServer, zktest.ToClient, zktest.Both} {
		for _, outage := range []time.Duration{time.Second, time.Minute} {
			bubble(t, func(t *testing.T, c *zktest.Cluster) {
				us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
				mkdir(t, us)
				k, o := newKeeper(t, us, "data")
				us.Link.Stall(d)
				k.Start()
				time.Sleep(100 * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				requireLate(t, closeIt(ctx, k))
				time.Sleep(outage)
				us.Link.Heal()
				time.Sleep(time.Minute)
				requireNone(t, other)
				require.NotContains(t, o.all(), "held")
			})
		}
	}
}

// The connection is closed while a create is under way, which the client answers later:
// nobody waits for it, and nothing is done with the Claim before that.
func TestTheConnectionIsClosedUnderACreate(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		asked.answer = make(chan struct{})
		mkdir(t, other)
		k, o := newKeeper(t, us, "data")
		k.Start()
		time.Sleep(time.Second)
		us.S.ConnClosed()
		require.ErrorIs(t, k.Await(bounded(t)), outcome.ErrClosed)
		require.ErrorIs(t, closeIt(bounded(t), k), outcome.ErrClosed)
		us.Close()
		close(asked.answer)
		time.Sleep(time.Minute)
		requireNone(t, other)
		require.NotContains(t, o.all(), "held")
	})
}

// A permanent error ends a Keeper, and Start begins again.
func TestAPermanentErrorEndsAKeeper(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		mkdir(t, other)
		_, err := other.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		k, o := newKeeper(t, us, "data")
		require.ErrorIs(t, k.Await(bounded(t)), zk.ErrNodeExists)
		require.ErrorIs(t, k.SetData(bounded(t), []byte("later")), zk.ErrNodeExists)
		require.ErrorIs(t, k.Await(bounded(t)), zk.ErrNodeExists)
		require.Equal(t, []string{"obtaining", "failed", "obtaining", "failed"}, o.all())
		require.NoError(t, other.Delete(path, -1))
		require.NoError(t, k.Await(bounded(t)))
		requireOwn(t, other, us, "later")
	})
}

// What was of a former session is replaced, and never held.
func TestAKeeperReplacesWhatAFormerSessionHasLeft(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		_, o := kept(t, us, "data")
		for range 3 {
			former := o.last()
			us.Link.Stall(zktest.Both)
			<-former.Ended().Done()
			_, stat, err := other.Get(path)
			require.NoError(t, err, "it has gone before it was lost")
			require.Equal(t, former.Token(), stat.Czxid)
			us.Link.Heal()
			time.Sleep(5 * time.Second)
			requireOwn(t, other, us, "data")
			require.Greater(t, o.last().Token(), former.Token())
		}
	})
}

// Another's znode is waited for by its watch: a create and a read, and nothing more.
func TestAKeeperWaitsForAnothersZnode(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		mkdir(t, other)
		create(t, other, "theirs")
		k, o := newKeeper(t, us, "ours")
		k.Start()
		time.Sleep(20 * time.Second)
		require.Equal(t, []string{"create", "watch"}, asked.ops())
		for range 3 { // it changes, and is another's all the same
			_, err := other.Set(path, []byte("new"), -1)
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
			require.Equal(t, []string{"create", "watch"}, asked.ops())
		}
		require.Equal(t, []string{"obtaining", "taken"}, o.all(), "it is told once")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := k.Await(ctx)
		require.ErrorIs(t, err, wait.ErrBusy)
		require.ErrorIs(t, err, zk.ErrNodeExists)
		require.Equal(t, context.DeadlineExceeded, outcome.Cancellation(err))
		require.ErrorContains(t, err, fmt.Sprintf("session %#x, with data %q",
			uint64(other.SessionID()), "new"))
		require.NoError(t, other.Delete(path, -1))
		require.NoError(t, k.Await(bounded(t)))
		requireOwn(t, other, us, "ours")
	})
}

// Of two Keepers of one connection the second one waits without a request, and has the
// name as soon as the first one has left.
func TestTheNameIsOneKeepers(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		first, _ := kept(t, us, "first")
		second, o := newKeeper(t, us, "second")
		second.Start()
		time.Sleep(time.Second)
		asked.reset()
		require.True(t, c.ExpireSession(us.SessionID()))
		time.Sleep(20 * time.Second)
		requireOwn(t, other, us, "first")
		require.Equal(t, []string{"obtaining", "taken"}, o.all())

		began := time.Now()
		require.NoError(t, closeIt(bounded(t), first))
		require.NoError(t, second.Await(bounded(t)))
		require.Less(t, time.Since(began), time.Second, "it polls")
		requireOwn(t, other, us, "second")
		require.NoError(t, closeIt(bounded(t), second))
		requireNone(t, other)
		third, _ := kept(t, us, "third")
		require.NoError(t, closeIt(bounded(t), third))
	})
}

// Two programs that fight over a name: one deletes each znode of ours at once. Ours comes
// back at once, after a second, and then every two, with two requests for each.
func TestTwoThatFightOverAName(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		mkdir(t, other)
		k, o := newKeeper(t, us, "ours")
		var calm atomic.Bool
		o.held = func() {
			if !calm.Load() {
				go func() { _ = other.Delete(path, -1) }()
			}
		}
		k.Start()
		time.Sleep(time.Minute + time.Second/2)
		held := o.heldAt()
		began := held[0]
		for i, want := range []time.Duration{0, 0, 1, 3, 5, 7, 9} {
			require.InDelta(t, (want * time.Second).Seconds(),
				held[i].Sub(began).Seconds(), 0.1, "znode %d", i)
		}
		requests := asked.reset()
		for i := range requests {
			n := 0
			for _, r := range requests[i:] {
				if r.at.Sub(requests[i].at) < time.Second {
					n++
				}
			}
			if requests[i].at.Sub(began) > time.Second {
				require.LessOrEqual(t, n, 2, "at %v", requests[i].at.Sub(began))
			}
		}
		require.LessOrEqual(t, len(held), 33)
		require.GreaterOrEqual(t, len(held), 30, "it gives up")

		calm.Store(true) // ten seconds of peace, and it is created again at once
		require.NoError(t, k.Await(bounded(t)))
		time.Sleep(20 * time.Second)
		began = time.Now()
		require.NoError(t, other.Delete(path, -1))
		time.Sleep(100 * time.Millisecond)
		requireOwn(t, other, us, "ours")
		require.Less(t, time.Since(began), time.Second)
	})
}

// A parent that is deleted again and again is created at the same pace.
func TestAParentThatIsDeletedAllTheTime(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		us.Link.Delay(5*time.Millisecond, 5*time.Millisecond) // it has gone by then
		k, _ := newKeeper(t, us, "ours")
		stop, stopped := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ; stop.Err() == nil; time.Sleep(time.Millisecond) {
				_ = other.Delete(path, -1)
				_ = other.Delete(dir, -1)
			}
		}()
		k.Start()
		time.Sleep(10 * time.Second)
		require.LessOrEqual(t, len(asked.reset()), 25)
		time.Sleep(time.Minute)
		n := len(asked.reset())
		require.LessOrEqual(t, n, 120)
		require.NotZero(t, n)
		stopped()
		<-done
		require.NoError(t, k.Await(bounded(t)))
		requireOwn(t, other, us, "ours")
	})
}

// Of many that set data at once, the last one's are there in the end, also where the
// session ends in the middle, and nobody waits for what was overtaken.
func TestTheLastDataWin(t *testing.T) {
	for _, ends := range []bool{false, true} {
		bubble(t, func(t *testing.T, c *zktest.Cluster) {
			us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
			asked := count(t, us)
			k, _ := kept(t, us, "first")
			time.Sleep(time.Second)
			asked.reset()
			us.Link.Stall(zktest.Both)
			done := make(chan error, 100)
			for i := range cap(done) {
				go func() { done <- k.SetData(bounded(t), fmt.Append(nil, i)) }()
				time.Sleep(time.Millisecond)
			}
			if ends {
				c.ExpireSession(us.SessionID())
			}
			us.Link.Heal()
			for range cap(done) {
				require.NoError(t, <-done)
			}
			requireOwn(t, other, us, "99")
			time.Sleep(time.Minute)
			requireOwn(t, other, us, "99")
			sets := 0
			for _, op := range asked.ops() {
				if op == "set" {
					sets++
				}
			}
			require.LessOrEqual(t, sets, 3, "what was overtaken is sent")
		})
	}
}

// The answer to a set is lost: it is found out, and the data are there.
func TestALostAnswerToASet(t *testing.T) {
	for name, lose := range map[string]func(*zktest.Link){
		"request": func(l *zktest.Link) { l.LoseRequest(zktest.OpSet) },
		"answer":  func(l *zktest.Link) { l.LoseReply(zktest.OpSet) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *zktest.Cluster) {
				us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
				k, o := kept(t, us, "first")
				lose(us.Link)
				require.NoError(t, k.SetData(bounded(t), []byte("second")))
				requireOwn(t, other, us, "second")
				require.NoError(t, k.SetData(bounded(t), []byte("third")))
				requireOwn(t, other, us, "third")
				require.False(t, o.last().HasEnded())
			})
		})
	}
}

// A caller of SetData that leaves is told so, and the data are set all the same.
func TestASetThatIsNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		k, _ := kept(t, us, "first")
		us.Link.Stall(zktest.Both)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		requireLate(t, k.SetData(ctx, []byte("second")))
		us.Link.Heal()
		time.Sleep(5 * time.Second)
		requireOwn(t, other, us, "second")
	})
}

// Data that are set while a create with others is under way are set after it.
func TestDataThatAreSetDuringACreate(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		asked.answer = make(chan struct{})
		mkdir(t, other)
		k, _ := newKeeper(t, us, "first")
		k.Start()
		time.Sleep(time.Second)
		done := make(chan error, 1)
		go func() { done <- k.SetData(bounded(t), []byte("second")) }()
		time.Sleep(time.Second)
		requireOwn(t, other, us, "first")
		require.Empty(t, done)
		close(asked.answer)
		require.NoError(t, <-done)
		requireOwn(t, other, us, "second")
	})
}

// The znode has gone, and nobody knows: a set finds that out, and waits for the next one.
func TestDataThatAreSetOnALostZnode(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		k, o := kept(t, us, "first")
		us.Link.Stall(zktest.ToClient)
		require.NoError(t, other.Delete(path, -1))
		done := make(chan error, 1)
		go func() { done <- k.SetData(bounded(t), []byte("second")) }()
		time.Sleep(time.Second)
		us.Link.Heal()
		require.NoError(t, <-done)
		requireOwn(t, other, us, "second")
		require.Equal(t, []string{"obtaining", "held", "obtaining", "held"}, o.all())
	})
}

// Close says so where the znode had gone before, and it was not known.
func TestCloseOfAZnodeThatHasGone(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		k, _ := kept(t, us, "data")
		us.Link.Stall(zktest.ToClient)
		require.NoError(t, other.Delete(path, -1))
		done := make(chan error, 1)
		go func() { done <- closeIt(bounded(t), k) }()
		time.Sleep(time.Second)
		us.Link.Heal()
		require.ErrorIs(t, <-done, znode.ErrGone)
		requireNone(t, other)
	})
}

// Data that another has set, too long to be read, are set again, and are no reason for
// the znode to stay.
func TestDataThatAreTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		asked := count(t, us)
		asked.deaf = true // so that the version is not known
		k, o := kept(t, us, "ours")
		_, err := other.Set(path, []byte("theirs"), -1)
		require.NoError(t, err)
		asked.tooLong = true
		require.NoError(t, k.SetData(bounded(t), []byte("ours again")))
		requireOwn(t, other, us, "ours again")
		require.NoError(t, closeIt(bounded(t), k))
		requireNone(t, other)
		require.Equal(t, []string{"obtaining", "held"}, o.all())
	})
}

// The name is another Keeper's also while its znode is not there.
func TestAKeeperBehindOneWithoutAZnode(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		first, _ := kept(t, us, "first")
		for range 2 { // the first one is created again at once, the second one later
			require.NoError(t, other.Delete(path, -1))
			time.Sleep(100 * time.Millisecond)
		}
		requireNone(t, other)
		second, o := newKeeper(t, us, "second")
		second.Start()
		time.Sleep(100 * time.Millisecond)
		requireNone(t, other)
		require.Equal(t, []string{"obtaining", "taken"}, o.all())
		require.NoError(t, first.Await(bounded(t)))
		requireOwn(t, other, us, "first")
		require.NoError(t, closeIt(bounded(t), first))
		require.NoError(t, second.Await(bounded(t)))
	})
}

// requireLate requires that a wait has ended with its time.
func requireLate(t *testing.T, err error) {
	t.Helper()
	require.Equal(t, context.DeadlineExceeded, outcome.Cancellation(err), "%v", err)
}

// Data that may not be set: the caller is told, and the znode stays. The next one has
// them.
func TestDataThatAreRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *zktest.Cluster) {
		us, other := newPeer(t, c, "us"), newPeer(t, c, "other")
		k, o := kept(t, us, "first")
		may := func(perms int32) {
			t.Helper()
			_, err := other.SetACL(path, zk.WorldACL(perms), -1)
			require.NoError(t, err)
		}
		may(zk.PermRead | zk.PermAdmin)
		require.ErrorIs(t, k.SetData(bounded(t), []byte("second")), zk.ErrNoAuth)
		requireOwn(t, other, us, "first")
		require.False(t, o.last().HasEnded())
		may(zk.PermAll)
		require.NoError(t, k.SetData(bounded(t), []byte("third")))
		requireOwn(t, other, us, "third")
		may(zk.PermRead)
		require.ErrorIs(t, k.SetData(bounded(t), []byte("fourth")), zk.ErrNoAuth)
		require.NoError(t, other.Delete(path, -1))
		<-o.last().Ended().Done()
		require.NoError(t, k.SetData(bounded(t), []byte("fifth")), "before the next one")
		requireOwn(t, other, us, "fifth")
	})
}
