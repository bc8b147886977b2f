package interop_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// The end of a session takes seconds, so the tests here let one session have all the
// recipes.

// Counterpart of Curator's testKilledSession. The Java threads do not learn of it: that
// the locks are gone shows only in that releasing them does no harm to the next holders.
func TestJavaHoldersSessionEnds(t *testing.T) {
	t.Parallel()
	java, inGo, look := newJava(t), newGo(t), newGo(t)
	var dying []*javaThread
	var next []*goOwner
	var waiting []<-chan error
	for i, r := range exclusive {
		path := zkserver.Path(t)
		dying, next = append(
			dying, java.lock(r, path).owner(),
		), append(next, inGo.lock(r, path).owner())
		require.True(t, dying[i].try(0), r.name)
		waiting = append(waiting, next[i].acquire())
		look.awaitChildren(path+r.queue, r.ahead+1)
	}
	java.expire()
	for i, r := range exclusive {
		require.NoError(
			t, locktest.Within(t, waiting[i], "the waiter for the "+r.name+" is granted"),
		)
		require.Equal(t, []string{"true"}, dying[i].do("held"), "Curator believes so")
		dying[i].release()
		require.False(
			t, dying[i].try(0), "the session that follows has to queue for the %s",
			r.name,
		)
		require.NoError(t, next[i].hold().Err(), r.name)
		next[i].release()
		require.True(t, dying[i].try(0), r.name)
		dying[i].release()
	}
}

// What a Java process leaves behind that is killed, holding locks and waiting for others,
// ends with its session.
func TestJavaProcessIsKilled(t *testing.T) {
	t.Parallel()
	look, inGo, process := newGo(t), newGo(t), ownJVM(t)
	java := newJavaIn(t, process, mortal)
	var holders, followers, behind []*goOwner
	var waiting, waitingBehind []<-chan error
	for i, r := range exclusive {
		held, queued := zkserver.Path(t), zkserver.Path(t)
		require.True(t, java.lock(r, held).owner().try(0), r.name)
		followers = append(followers, inGo.lock(r, held).owner())
		waiting = append(waiting, followers[i].acquire())
		look.awaitChildren(held+r.queue, r.ahead+1)

		lock := inGo.lock(r, queued)
		holders, behind = append(holders, lock.owner()), append(behind, lock.owner())
		require.True(t, holders[i].try(0), r.name)
		look.awaitChildren(queued+r.queue, r.ahead)
		java.lock(r, queued).owner().acquire()
		look.awaitChildren(queued+r.queue, r.ahead+1)
		waitingBehind = append(waitingBehind, behind[i].acquire())
		look.awaitChildren(queued+r.queue, r.ahead+2)
	}
	process.kill(t)
	for i, r := range exclusive {
		require.NoError(t, afterDeath(
			t, waiting[i], "the one behind the holder of the "+r.name+" is granted",
		))
		followers[i].release()
		require.Empty(t, waitingBehind[i])
		holders[i].release()
		require.NoError(t, afterDeath(
			t, waitingBehind[i],
			"the one behind the waiter for the "+r.name+" is granted",
		))
		behind[i].release()
	}
}

// Java waiters are granted when the server ends the session of a Go process that is cut
// off, and that process has been told before.
func TestGoHolderIsCutOff(t *testing.T) {
	t.Parallel()
	cut, java, look := newGoAt(
		t, serversOf(t), mortal,
	), newJava(t), newGo(t)
	var dying []*goOwner
	var next []contender
	var holds []*recipes.Hold
	var waiting []<-chan error
	for i, r := range exclusive {
		path := zkserver.Path(t)
		dying, next = append(dying, cut.lock(r, path).owner()), append(
			next, java.lock(r, path).contender(),
		)
		require.True(t, dying[i].try(0), r.name)
		holds = append(holds, dying[i].hold())
		waiting = append(waiting, next[i].acquire())
		look.awaitChildren(path+r.queue, r.ahead+1)
	}
	cut.tap.Partition()
	for i, r := range exclusive {
		require.NoError(
			t, afterDeath(t, waiting[i], "the waiter for the "+r.name+" is granted"),
		)
		require.ErrorIs(t, holds[i].Err(), recipes.ErrLockLost)
	}
	cut.tap.Heal()
	cut.awaitSession() // a try before that does not know who is ahead
	for i, r := range exclusive {
		require.ErrorIs(
			t, dying[i].lock.Release(dying[i].ctx), recipes.ErrLockLost, r.name,
		)
		require.False(
			t, dying[i].try(0), "the session that follows has to queue for the %s",
			r.name,
		)
		next[i].release()
		require.True(t, dying[i].try(0), r.name)
	}
}

// Counterpart of Curator's testClientClose of semaphores, for each recipe.
func TestGoHolderClosesItsSession(t *testing.T) {
	eachExclusive(t, func(t *testing.T, r recipe) {
		look, path := newGo(t), zkserver.Path(t)
		closing := newGo(t)
		dying, next := closing.lock(r, path).owner(), newJava(t).lock(r, path).contender()
		require.True(t, dying.try(0))
		held := dying.hold()
		waiting := next.acquire()
		look.awaitChildren(path+r.queue, r.ahead+1)
		closing.Close()
		require.NoError(t, locktest.Within(t, waiting, "the waiter is granted"))
		require.ErrorIs(t, held.Err(), recipes.ErrLockLost)
		next.release()
	})
}

// A waiter whose session ends loses its place to those behind it. Java's queues anew;
// Go's does not when its connection was closed.
func TestWaitersSessionEnds(t *testing.T) {
	t.Parallel()
	look, java, closing := newGo(t), newJava(t), newGo(t)
	inGo, inJava := newGo(t), newJava(t)
	var holders []contender
	var contenders [][]contender
	var gone []<-chan error
	var granted []<-chan int
	for i, r := range exclusive {
		path := zkserver.Path(t)
		goLock := inGo.lock(r, path)
		holders = append(holders, goLock.contender())
		require.True(t, holders[i].try(0), r.name)
		look.awaitChildren(path+r.queue, r.ahead)
		contenders = append(contenders, []contender{
			java.lock(r, path).contender(), inJava.lock(r, path).contender(),
			goLock.contender(),
		})
		granted = append(granted, queueUp(t, look, path+r.queue, r.ahead, contenders[i]))
		gone = append(gone, closing.lock(r, path).contender().acquire())
		look.awaitChildren(path+r.queue, r.ahead+4)
		if r.holds == "/leases" {
			// Curator makes the lease that waits, too, before it waits. When the session
			// ends in between it does so in the next one all the same, and then stands
			// among the leases without a place in the queue, so that nobody is granted
			// any more.
			look.awaitChildren(path+r.holds, 2)
		}
	}
	java.expire()
	closing.Close()
	for i, r := range exclusive {
		require.Error(
			t,
			locktest.Within(t, gone[i], "a closed session ends the wait for the "+r.name),
		)
		require.Empty(t, granted[i])
		holders[i].release()
		for _, next := range []int{1, 2, 0} {
			require.Equal(
				t, next,
				locktest.Within(t, granted[i], "the next for the "+r.name+" is granted"),
			)
			require.Empty(t, granted[i])
			contenders[i][next].release()
		}
	}
}
