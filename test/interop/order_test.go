package interop_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// queueUp has contenders join a queue one after the other, behind a holder, and returns
// the channel that tells the index of each one that is granted.
func queueUp(
	t *testing.T, look *goPeer, queue string, ahead int, contenders []contender,
) <-chan int {
	t.Helper()
	look.awaitChildren(queue, ahead)
	granted := make(chan int, len(contenders))
	for i, c := range contenders {
		done := c.acquire()
		go func() {
			if err := <-done; err != nil {
				t.Errorf("contender %d: %v", i, err)
			}
			granted <- i
		}()
		look.awaitChildren(queue, ahead+i+1)
	}
	return granted
}

// Java and Go get a lock in the order in which they asked, and what a store would see as
// fencing tokens grows on the way: Go's tokens and the czxids of Java's znodes.
func TestGrantedInTurn(t *testing.T) {
	eachExclusive(t, func(t *testing.T, r recipe) {
		look, path := newGo(t), zkserver.Path(t)
		goA, goB, javaA, javaB := newGo(t).lock(
			r, path,
		), newGo(t).lock(r, path), newJava(t).lock(r, path), newJava(t).lock(r, path)
		first := goA.owner()
		require.True(t, first.try(0))
		contenders := []contender{ // with neighbours of one session, and of one process
			javaA.contender(), goA.contender(), javaB.contender(), goB.contender(),
			goB.contender(), javaB.contender(),
			javaA.contender(), javaA.contender(), goA.contender(), goB.contender(),
		}
		granted := queueUp(t, look, path+r.queue, r.ahead, contenders)
		before := first.hold().FencingToken()
		first.release()
		for i, c := range contenders {
			require.Equal(t, i, locktest.Within(t, granted, "the next is granted"))
			token := look.eldest(path + r.holds)
			if o, ok := c.(*goOwner); ok {
				require.GreaterOrEqual(t, o.hold().FencingToken(), token)
				token = o.hold().FencingToken()
			}
			require.Greater(t, token, before)
			before = token
			require.Empty(t, granted)
			c.release()
		}
	})
}

// A token also grows over the end of the lock's directory, with which its sequence
// numbers begin anew.
func TestTokensGrowOverTheDirectorysEnd(t *testing.T) {
	t.Parallel()
	each(t, slices.Concat(exclusive, cached), func(t *testing.T, r recipe) {
		look, path := newGo(t), zkserver.Path(t)
		inGo, inJava := newGo(t).lock(
			r, path,
		).owner(), newJava(t).lock(r, path).contender()
		var before int64
		for range 2 {
			require.True(t, inJava.try(0))
			czxid := look.eldest(path + r.holds)
			require.Greater(t, czxid, before)
			inJava.release()
			require.True(t, inGo.try(0))
			before = inGo.hold().FencingToken()
			require.Greater(t, before, czxid)
			inGo.release()
			look.deleteAll(path)
		}
	})
}

// go-zookeeper's own lock stands in the same queue.
func TestZkLockInTheQueue(t *testing.T) {
	t.Parallel()
	look, path := newGo(t), zkserver.Path(t)
	a, b := newGo(t), newGo(t)
	inGo, inJava := newGo(t).lock(mutex, path), newJava(t).lock(mutex, path)
	first := inJava.contender()
	require.True(t, first.try(0))
	dying := a.zkLock(path)
	contenders := []contender{
		b.zkLock(path), inGo.contender(), newGo(t).zkLock(path), inJava.contender(),
		inGo.contender(), dying, inJava.contender(),
	}
	granted := queueUp(t, look, path, 1, contenders)
	first.release()
	for i, c := range contenders {
		require.Equal(t, i, locktest.Within(t, granted, "the next is granted"))
		require.Empty(t, granted)
		if c == dying {
			a.Close()
		} else {
			c.release()
		}
	}
	require.Empty(t, look.children(path))
}
