package interop_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A fleet is how locks are made that processes in Go and Python, and maybe Java, share.
type fleet struct {
	name   string
	recipe recipe // in Go, and in Java if that is among them
	kind   string // in Python; see python/peer.py
	java   bool
}

var withKazoo = recipes.WithNames("__lock__")

var fleets = []fleet{
	{name: "mutex", kind: "lock", recipe: mutex.keeping(func(
		c recipes.Conn, path string,
	) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessMutex(c, path, withKazoo)
	})},
	{name: "cached mutex", kind: "lock", recipe: mutex.keeping(func(
		c recipes.Conn, path string,
	) (recipes.InterProcessLock, error) {
		return recipes.NewInterProcessMutex(c, path, withKazoo, caching)
	})},
	{name: "write lock", kind: "writelock", recipe: writeLock.keeping(func(
		c recipes.Conn, path string,
	) (recipes.InterProcessLock, error) {
		l, err := recipes.NewInterProcessReadWriteLock(c, path, withKazoo)
		if err != nil {
			return nil, err
		}
		return l.WriteLock(), nil
	})},
	{name: "mutex with Java", kind: "curatorlock", recipe: mutex, java: true},
}

func eachFleet(t *testing.T, test func(t *testing.T, f fleet)) {
	t.Helper()
	t.Parallel()
	for _, f := range fleets {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

func TestACountIsExactInThreeLanguages(t *testing.T) {
	const times = 25
	eachFleet(t, func(t *testing.T, f fleet) {
		path := zkserver.Path(t)
		inGo, other := newGo(t).lock(f.recipe, path), newGo(t).lock(f.recipe, path)
		python, another := newPython(t, steady), newPython(t, steady)
		contenders := []contender{
			inGo.contender(), inGo.contender(), other.contender(),
			python.lock(f.kind, path), python.lock(f.kind, path),
			another.lock(f.kind, path),
		}
		if f.java {
			inJava := newJava(t).lock(f.recipe, path)
			contenders = append(contenders, inJava.contender(), inJava.contender())
		}
		requireExact(t, path+"-count", times, contenders)
	})
}

// Each is granted in its turn, whichever language it is in, and a try by any fails while
// another one holds the lock.
func TestPythonInTheQueue(t *testing.T) {
	eachFleet(t, func(t *testing.T, f fleet) {
		look, path := newGo(t), zkserver.Path(t)
		python := newPython(t, steady)
		contenders := []contender{
			newGo(t).lock(f.recipe, path).contender(), python.lock(f.kind, path),
			python.lock(f.kind, path), newGo(t).lock(f.recipe, path).contender(),
			newPython(t, steady).lock(f.kind, path),
			newGo(t).lock(f.recipe, path).contender(),
		}
		if f.java {
			contenders = append(contenders, newJava(t).lock(f.recipe, path).contender())
		}
		first := python.lock(f.kind, path)
		require.True(t, first.try(0))
		for _, c := range contenders {
			require.False(t, c.try(0))
		}
		granted := queueUp(t, look, path, 1, contenders)
		first.release()
		for i, c := range contenders {
			require.Equal(t, i, locktest.Within(t, granted, "the next is granted"))
			require.False(t, first.try(0))
			require.Empty(t, granted)
			c.release()
		}
	})
}

// A holder that dies hands over with the end of its session, either way.
func TestPythonAndGoDie(t *testing.T) {
	eachFleet(t, func(t *testing.T, f fleet) {
		look, path := newGo(t), zkserver.Path(t)
		servers := serversOf(t)
		dying, inGo := newPython(t, mortal), newGo(t).lock(f.recipe, path).contender()
		require.True(t, dying.lock(f.kind, path).try(0))
		granted := inGo.acquire()
		look.awaitChildren(path, 2)
		dying.program.kill(t)
		require.NoError(t, afterDeath(t, granted, "Go is granted"))
		inGo.release()

		cut := newGoAt(t, servers, mortal)
		held := cut.lock(f.recipe, path).owner()
		require.True(t, held.try(locktest.Patience))
		granted = newPython(t, steady).lock(f.kind, path).acquire()
		look.awaitChildren(path, 2)
		hold := held.hold()
		cut.tap.Partition()
		require.NoError(t, afterDeath(t, granted, "Python is granted"))
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost, "Go was told before")
	})
}

func TestPythonAmongTheParticipants(t *testing.T) {
	t.Parallel()
	look, path := newGo(t), zkserver.Path(t)
	inGo := newGo(t)
	lock, err := recipes.NewInterProcessMutex(inGo, path, withKazoo)
	require.NoError(t, err)
	python := newPython(t, steady)
	require.True(t, python.lock("lock", path).try(0))
	ctx := recipes.WithOwner(t.Context())
	granted := locktest.Start(func() error { return lock.Acquire(ctx) })
	look.awaitChildren(path, 2)
	all, err := lock.Participants(t.Context())
	require.NoError(t, err)
	seen, err := recipes.Inspect(t.Context(), look, path)
	require.NoError(t, err)
	require.Equal(t, all, seen)
	for i, session := range []int64{python.session, inGo.SessionID()} {
		require.Equal(t, session, all[i].Session)
		require.Equal(t, "lock", all[i].Kind)
		require.Equal(t, i == 0, all[i].Holding)
		require.WithinDuration(t, time.Now(), all[i].Since, locktest.Patience)
	}
	python.do("close", python.name)
	require.NoError(t, locktest.Within(t, granted, "Go is granted"))
	require.NoError(t, lock.Release(ctx))
}
