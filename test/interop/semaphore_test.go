package interop_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A goSemaphore is a semaphore in Go.
type goSemaphore struct {
	*recipes.InterProcessSemaphoreV2
	t testing.TB
}

func (p *goPeer) semaphore(path string, most int) goSemaphore {
	p.t.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2(p.Client, path, most)
	require.NoError(p.t, err)
	return goSemaphore{s, p.t}
}

func (p *goPeer) sharedSemaphore(path, count string) goSemaphore {
	p.t.Helper()
	s, err := recipes.NewInterProcessSemaphoreV2Shared(p.Client, path, count)
	require.NoError(p.t, err)
	return goSemaphore{s, p.t}
}

// try returns n leases, or none where they are not to be had in time.
func (s goSemaphore) try(n int, wait time.Duration) []*recipes.Lease {
	s.t.Helper()
	leases, err := s.AcquireTimeout(s.t.Context(), n, wait)
	require.NoError(s.t, err)
	return leases
}

func (s goSemaphore) giveBack(leases ...*recipes.Lease) {
	s.t.Helper()
	require.NoError(s.t, s.ReturnAll(s.t.Context(), leases))
}

// acquire waits for n leases, which the channel brings; nil if that failed.
func (s goSemaphore) acquire(ctx context.Context, n int) <-chan []*recipes.Lease {
	granted := make(chan []*recipes.Lease, 1)
	go func() {
		leases, err := s.AcquireN(ctx, n)
		if err != nil && ctx.Err() == nil {
			s.t.Error(err)
		}
		granted <- leases
	}()
	return granted
}

// A javaSemaphore is a semaphore in Java, as one thread sees it.
type javaSemaphore struct {
	peer         *javaPeer
	name, thread string
}

func (p *javaPeer) semaphore(path string, most int) javaSemaphore {
	p.t.Helper()
	return javaSemaphore{
		p, p.make("semaphore", path, strconv.Itoa(most)), newName("thread"),
	}
}

// sharedSemaphore makes a semaphore with the maximum of a SharedCount that has been made.
func (p *javaPeer) sharedSemaphore(path, count string) javaSemaphore {
	p.t.Helper()
	return javaSemaphore{p, p.make("sharedsemaphore", path, count), newName("thread")}
}

// try returns the names of n leases, or none where they are not to be had in time.
func (s javaSemaphore) try(n int, wait time.Duration) []string {
	s.peer.t.Helper()
	return s.peer.jvm.do(
		s.peer.t, s.thread, "leases", s.name, strconv.Itoa(n),
		strconv.FormatInt(wait.Milliseconds(), 10),
	)
}

func (s javaSemaphore) giveBack(leases ...string) {
	s.peer.t.Helper()
	s.peer.do("return", leases...)
}

// acquire waits for n leases, whose names the channel brings.
func (s javaSemaphore) acquire(n int) <-chan answer {
	return s.peer.jvm.ask(s.thread, "leases", s.name, strconv.Itoa(n))
}

// Leases are counted together, whoever has them. Counterpart of Curator's
// TestInterProcessSemaphore.testSimple, testSimple2, testRelease1AtATime and
// testReleaseInChunks.
func TestLeasesAreCountedTogether(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, inGo, inJava := newGo(t), newGo(t).semaphore(
		path, 4,
	), newJava(t).semaphore(path, 4)
	goLeases, javaLeases := inGo.try(
		2, locktest.Patience,
	), inJava.try(2, locktest.Patience)
	require.Len(t, goLeases, 2)
	require.Len(t, javaLeases, 2)
	require.Empty(t, inGo.try(1, 0))
	require.Empty(t, inJava.try(1, 0))
	look.awaitChildren(path+"/leases", 4)
	look.awaitChildren(path+"/locks", 0)

	inGo.giveBack(goLeases[0])
	require.Empty(t, inGo.try(2, 0), "one is free, not two")
	require.Empty(t, inJava.try(2, 0), "one is free, not two")
	look.awaitChildren(path+"/leases", 3)
	more := inJava.try(1, locktest.Patience)
	require.Len(t, more, 1)
	inJava.giveBack(javaLeases...)
	goMore := inGo.try(2, locktest.Patience)
	require.Len(t, goMore, 2)
	require.Empty(t, inJava.try(1, 0))
	inGo.giveBack(append(goMore, goLeases[1])...)
	inJava.giveBack(more...)
	require.Empty(t, look.children(path+"/leases"))
}

// Who waits for several leases is not overtaken by who wants one, in either language.
func TestSeveralLeasesAreNotOvertaken(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, inGo := newGo(t), newGo(t).semaphore(path, 3)
	java := newJava(t)
	inJava, alsoInJava := java.semaphore(path, 3), java.semaphore(path, 3)
	javaLeases := inJava.try(2, locktest.Patience)
	require.Len(t, javaLeases, 2)

	three := inGo.acquire(t.Context(), 3)
	look.awaitChildren(path+"/leases", 2+3)
	require.Empty(
		t, alsoInJava.try(1, 100*time.Millisecond),
		"one is free, but not for those behind",
	)
	one := alsoInJava.acquire(1)
	look.awaitChildren(path+"/locks", 2)
	inJava.giveBack(javaLeases[0])
	require.Empty(t, three)
	inJava.giveBack(javaLeases[1])
	goLeases := locktest.Within(t, three, "three leases are granted")
	require.Len(t, goLeases, 3)
	look.awaitChildren(path+"/leases", 3+1)
	require.Empty(t, one)
	inGo.giveBack(goLeases[1])
	names := locktest.Within(t, one, "one lease is granted")
	require.NoError(t, names.err)
	require.Len(t, names.values, 1)
	inJava.giveBack(names.values...)
	inGo.giveBack(goLeases...)
}

// Curator asks for several leases one by one, and lets others ask in between. Two who do
// so, or one who does and a Go process, may each have a part of what they want and wait
// for the other's; when one gives up, and leaves nothing, the other is granted.
func TestCuratorInterleavesSeveralLeases(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, java := newGo(t), newJava(t)
	inGo, inJava := newGo(t).semaphore(path, 2), java.semaphore(path, 2)
	gate := newJava(t).lock(mutex, path+"/locks").contender() // so that they queue
	require.True(t, gate.try(0))
	both := inJava.acquire(2)
	look.awaitChildren(path+"/locks", 2)
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	bothInGo := inGo.acquire(ctx, 2)
	look.awaitChildren(path+"/locks", 3)
	gate.release()
	look.awaitChildren(path+"/leases", 1+2)
	look.awaitChildren(path+"/locks", 2)
	require.Empty(t, both)
	require.Empty(t, bothInGo)
	giveUp()
	require.Nil(t, locktest.Within(t, bothInGo, "Go gives up"))
	names := locktest.Within(t, both, "Java's second lease is granted")
	require.NoError(t, names.err)
	require.Len(t, names.values, 2)
	require.Len(t, look.children(path+"/leases"), 2)
	inJava.giveBack(names.values...)
}

// Leases end with the session that has them, in either language.
func TestLeasesEndWithTheSession(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, java, closing := newGo(t), newJava(t), newGo(t)
	inGo, inJava := newGo(t).semaphore(path, 3), newJava(t).semaphore(path, 3)
	require.Len(t, java.semaphore(path, 3).try(2, locktest.Patience), 2)
	three := inGo.acquire(t.Context(), 3)
	look.awaitChildren(path+"/leases", 2+3)
	java.expire()
	inGo.giveBack(locktest.Within(t, three, "three leases are granted")...)

	leases := closing.semaphore(path, 3).try(3, locktest.Patience)
	require.Len(t, leases, 3)
	one := inJava.acquire(1)
	look.awaitChildren(path+"/leases", 3+1)
	closing.Close()
	names := locktest.Within(t, one, "one lease is granted")
	require.NoError(t, names.err)
	inJava.giveBack(names.values...)
	for _, lease := range leases {
		require.ErrorIs(t, lease.Err(), recipes.ErrLockLost)
	}
}

// A maximum that is shared is seen, and may be changed, from both sides: a higher one
// wakes those who wait, a lower one takes nothing. Counterpart of Curator's
// testThreadedLeaseIncrease.
func TestSharedCount(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	countPath := path + "-count"
	look, java := newGo(t), newJava(t)
	ctx := t.Context()
	inGo := newGo(t).sharedSemaphore(path, countPath)
	_, err := inGo.Acquire(ctx)
	require.ErrorIs(t, err, zk.ErrNoNode)
	require.NoError(t, recipes.SetSharedCount(ctx, look.Client, countPath, 1))

	count := java.make("count", countPath, "7")
	require.Equal(
		t, []string{"1"}, java.do("get", count), "what is there counts, not Java's seed",
	)
	inJava, alsoInJava := java.sharedSemaphore(
		path, count,
	), java.sharedSemaphore(path, count)
	leases := inJava.try(1, locktest.Patience)
	require.Len(t, leases, 1)

	waitsInGo := inGo.acquire(ctx, 1)
	look.awaitChildren(path+"/leases", 2)
	require.Empty(t, waitsInGo)
	java.do("set", count, "2")
	goLeases := locktest.Within(t, waitsInGo, "Java's change reaches Go")
	waitsInJava := alsoInJava.acquire(1)
	look.awaitChildren(path+"/leases", 3)
	require.Empty(t, waitsInJava)
	require.NoError(t, recipes.SetSharedCount(ctx, look.Client, countPath, 3))
	granted := locktest.Within(t, waitsInJava, "Go's change reaches Java")
	require.NoError(t, granted.err)

	require.NoError(t, recipes.SetSharedCount(ctx, look.Client, countPath, 1))
	locktest.Eventually(
		t, func() bool { return java.do("get", count)[0] == "1" },
		"Go's change does not reach Java",
	)
	require.NoError(t, goLeases[0].Err())
	require.Len(t, look.children(path+"/leases"), 3)
	inGo.giveBack(goLeases...)
	inJava.giveBack(leases...)
	require.Empty(t, inGo.try(1, 0))
	require.Empty(t, inJava.try(1, 0))
	inJava.giveBack(granted.values...)
	inGo.giveBack(inGo.try(1, locktest.Patience)...)
	require.Len(t, inJava.try(1, locktest.Patience), 1)
}

// A count that Java has made is Go's maximum too.
func TestSharedCountMadeInJava(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	java, inGo := newJava(t), newGo(t)
	java.make("count", path+"-count", "2")
	require.Len(t, inGo.sharedSemaphore(path, path+"-count").try(2, locktest.Patience), 2)
	require.Empty(t, inGo.sharedSemaphore(path, path+"-count").try(1, 0))
}
