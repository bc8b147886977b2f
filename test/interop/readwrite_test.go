package interop_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// A readWrite is one owner's two sides of a read/write lock.
type readWrite struct{ read, write contender }

// readWrite makes a lock and returns what makes owners of it.
func (p *goPeer) readWrite(path string) func() readWrite {
	p.t.Helper()
	lock, err := recipes.NewInterProcessReadWriteLock(p.Client, path)
	require.NoError(p.t, err)
	return func() readWrite {
		ctx := recipes.WithOwner(p.t.Context())
		return readWrite{
			read:  &goOwner{goLock{p, lock.ReadLock()}, p.t, ctx},
			write: &goOwner{goLock{p, lock.WriteLock()}, p.t, ctx},
		}
	}
}

func (p *javaPeer) readWrite(path string) func() readWrite {
	p.t.Helper()
	name := p.make("readwrite", path)
	return func() readWrite {
		thread := newName("thread")
		return readWrite{
			read:  &javaThread{javaLock{p, name + ".read"}, thread},
			write: &javaThread{javaLock{p, name + ".write"}, thread},
		}
	}
}

// eachWay runs a test with the roles of Go and Java as they are named, and exchanged.
func eachWay(
	t *testing.T,
	f func(t *testing.T, path string, look *goPeer, inGo, inJava func() readWrite),
) {
	t.Parallel()
	t.Run("as named", func(t *testing.T) {
		t.Parallel()
		path := zkserver.Path(t)
		f(t, path, newGo(t), newGo(t).readWrite(path), newJava(t).readWrite(path))
	})
	t.Run("exchanged", func(t *testing.T) {
		t.Parallel()
		path := zkserver.Path(t)
		f(t, path, newGo(t), newJava(t).readWrite(path), newGo(t).readWrite(path))
	})
}

// Readers share, writers exclude, and nobody overtakes anybody.
func TestReadersAndWritersInTurn(t *testing.T) {
	eachWay(t, func(
		t *testing.T, path string, look *goPeer, inGo, inJava func() readWrite,
	) {
		goReads, javaReads := inGo(), inJava()
		require.True(t, goReads.read.try(0))
		require.True(t, javaReads.read.try(0), "readers share")
		require.False(t, inGo().write.try(0))
		require.False(t, inJava().write.try(100*time.Millisecond))
		look.awaitChildren(path, 2)

		javaWrites, goReadsLater := inJava().write, inGo().read
		javaReadsLater, goWrites := inJava().read, inGo().write
		granted := queueUp(
			t, look, path, 2,
			[]contender{javaWrites, goReadsLater, javaReadsLater, goWrites},
		)
		require.False(t, inGo().read.try(0), "a reader waits for a writer that waits")
		require.False(t, inJava().read.try(0), "a reader waits for a writer that waits")
		goReads.read.release()
		require.Empty(t, granted, "a reader is left")
		javaReads.read.release()
		require.Equal(t, 0, locktest.Within(t, granted, "the writer is granted"))
		require.False(t, inGo().read.try(0))
		require.Empty(t, granted)
		javaWrites.release()
		both := []int{
			locktest.Within(t, granted, "a reader is granted"),
			locktest.Within(t, granted, "a reader is granted"),
		}
		require.ElementsMatch(t, []int{1, 2}, both)
		javaReadsLater.release()
		require.False(t, inJava().write.try(0))
		require.Empty(t, granted)
		goReadsLater.release()
		require.Equal(t, 3, locktest.Within(t, granted, "the last writer is granted"))
		goWrites.release()
	})
}

// Counterpart of Curator's TestInterProcessReadWriteLock.testBasic: writers in both
// languages change two numbers one after the other, readers in both never see them
// differ, and no change is lost.
func TestReadersSeeNoHalfOfAWrite(t *testing.T) {
	t.Parallel()
	const times = 30
	path := zkserver.Path(t)
	look, java := newGo(t), newJava(t)
	paths := []string{path + "-a", path + "-b"}
	for _, p := range paths {
		look.createNumber(p)
	}
	inGo, inJava := newGo(t).readWrite(path), java.readWrite(path)
	done := []<-chan error{}
	for range 2 {
		goReader := inGo().read.(*goOwner)
		done = append(done,
			inGo().write.increment(times, paths...),
			inJava().write.increment(times, paths...),
			locktest.Start(func() error { return goReader.compare(times, paths) }),
			inJava().read.(*javaThread).ask(
				"compare", append([]string{java.name, strconv.Itoa(times)}, paths...)...,
			),
		)
	}
	for _, d := range done {
		require.NoError(t, whileCounted(t, look, paths[1], d))
	}
	for _, p := range paths {
		n, err := look.number(p)
		require.NoError(t, err)
		require.Equal(t, 4*times, n)
	}
}

// compare is Shared.compare in Go.
func (o *goOwner) compare(times int, paths []string) error {
	for range times {
		err := recipes.Do(
			o.ctx, o.lock,
			func(context.Context, *recipes.Hold) error { return o.peer.equal(paths) },
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// Counterpart of Curator's testThatUpgradingIsDisallowed.
func TestNobodyUpgrades(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, inGo, inJava := newGo(t), newGo(t).readWrite(path), newJava(t).readWrite(path)
	a, b := inGo(), inJava()
	require.True(t, a.read.try(0))
	require.ErrorIs(
		t, locktest.Within(t, a.write.acquire(), "the refusal"), recipes.ErrUpgrade,
	)
	require.False(
		t, b.read.try(0) && b.write.try(100*time.Millisecond),
		"Curator's would wait for itself",
	)
	look.awaitChildren(path, 2)
	a.read.release()
	b.read.release()
	for _, w := range []readWrite{inJava(), inGo()} {
		require.True(t, w.write.try(0))
		w.write.release()
	}
}

// Counterpart of Curator's testDowngrading, testContendingDowngrading and
// testThatDowngradingRespectsThreads: a writer in Go goes on as a reader while a Java
// writer waits.
func TestGoDowngrades(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, inGo, inJava := newGo(t), newGo(t).readWrite(path), newJava(t).readWrite(path)
	owner, writer, reader := inGo(), inJava().write, inJava().read
	require.True(t, owner.write.try(0))
	granted := queueUp(t, look, path, 1, []contender{writer, reader})
	require.True(t, owner.read.try(0))
	require.False(t, inGo().read.try(0), "another owner does not get in with it")
	owner.write.release()
	look.awaitChildren(path, 3)
	require.False(t, inJava().write.try(100*time.Millisecond))
	require.False(t, inJava().read.try(0), "it waits for the writer that waits")
	require.Empty(t, granted)
	owner.read.release()
	require.Equal(t, 0, locktest.Within(t, granted, "the writer is granted"))
	require.Empty(t, granted)
	writer.release()
	require.Equal(t, 1, locktest.Within(t, granted, "the reader is granted"))
	reader.release()
}

// A writer in Java goes on as a reader: whoever comes after that in Go finds a reader.
func TestJavaDowngrades(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, inGo, inJava := newGo(t), newGo(t).readWrite(path), newJava(t).readWrite(path)
	owner, reader, writer := inJava(), inGo().read, inGo().write
	require.True(t, owner.write.try(0))
	require.True(t, owner.read.try(0))
	require.False(t, reader.try(0))
	owner.write.release()
	require.True(t, reader.try(0), "readers share")
	require.False(t, writer.try(0))
	granted := queueUp(t, look, path, 2, []contender{writer})
	owner.read.release()
	require.Empty(t, granted)
	reader.release()
	require.Equal(t, 0, locktest.Within(t, granted, "the writer is granted"))
	writer.release()
}

// A writer that waits in Go while a writer in Java goes on as a reader. Since 5.5 Curator
// gives the read node the write node's number, and the writer waits. Before, the read
// node stands behind the writer, who enters beside it, whatever language it is written in
// (CURATOR-276, CURATOR-621).
func TestJavaDowngradesBeforeAWriter(t *testing.T) {
	t.Parallel()
	path := zkserver.Path(t)
	look, inGo, inJava := newGo(t), newGo(t).readWrite(path), newJava(t).readWrite(path)
	owner, writer := inJava(), inGo().write
	require.True(t, owner.write.try(0))
	granted := queueUp(t, look, path, 1, []contender{writer})
	require.True(t, owner.read.try(0))
	queue := look.awaitChildren(path, 3)
	number := func(node string) string { return node[len(node)-10:] }
	ahead := number(queue[0]) == number(queue[1])
	owner.write.release()
	if ahead {
		look.awaitChildren(path, 2)
		require.False(t, inJava().read.try(0), "it waits for the writer that waits")
		require.Empty(t, granted)
		owner.read.release()
		require.Equal(t, 0, locktest.Within(t, granted, "the writer is granted"))
	} else {
		require.Equal(t, 0, locktest.Within(t, granted, "the writer is granted"))
		owner.read.release()
	}
	writer.release()
}
