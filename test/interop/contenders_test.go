package interop_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A contender is one owner of a lock, in Go or in Java.
type contender interface {
	acquire() <-chan error // begins to; the channel tells when the lock is held
	try(wait time.Duration) bool
	release()
	// Shared.increment, and its like in Go
	increment(times int, paths ...string) <-chan error
}

// An entrance is what a process makes to get at a lock: an object for any number of
// contenders.
type entrance interface {
	contender() contender
}

// goLock is the entrance by a Go value.
type goLock struct {
	peer *goPeer
	lock recipes.InterProcessLock
}

func (p *goPeer) lock(r recipe, path string) goLock {
	p.t.Helper()
	lock, err := r.lock(p.Client, path)
	require.NoError(p.t, err)
	return goLock{p, lock}
}

func (l goLock) contender() contender { return l.owner() }

func (l goLock) owner() *goOwner {
	return &goOwner{goLock: l, t: l.peer.t, ctx: recipes.WithOwner(l.peer.t.Context())}
}

type goOwner struct {
	goLock
	t   testing.TB
	ctx context.Context // carries the owner
}

func (o *goOwner) acquire() <-chan error {
	return locktest.Start(func() error { return o.lock.Acquire(o.ctx) })
}

// try asks again where a busy machine has had no answer in so short a time: whether the
// lock was to be had is not known then.
func (o *goOwner) try(wait time.Duration) (held bool) {
	o.t.Helper()
	locktest.Eventually(o.t, func() bool {
		var err error
		held, err = o.lock.AcquireTimeout(o.ctx, wait)
		if errors.Is(err, recipes.ErrUnavailable) {
			return false
		}
		require.NoError(o.t, err)
		return true
	}, "ZooKeeper does not answer")
	return held
}

func (o *goOwner) release() {
	o.t.Helper()
	require.NoError(o.t, o.lock.Release(o.ctx))
}

func (o *goOwner) increment(times int, paths ...string) <-chan error {
	return locktest.Start(func() error {
		for range times {
			err := recipes.Do(o.ctx, o.lock, func(
				context.Context, *recipes.Hold,
			) error {
				return o.peer.add(paths...)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// hold returns what the owner holds; it must hold it.
func (o *goOwner) hold() *recipes.Hold {
	o.t.Helper()
	h := o.lock.(interface {
		Hold(ctx context.Context) *recipes.Hold
	}).Hold(o.ctx)
	require.NotNil(o.t, h)
	return h
}

// javaLock is the entrance by a Java object.
type javaLock struct {
	peer *javaPeer
	name string
}

func (p *javaPeer) lock(r recipe, path string) javaLock {
	p.t.Helper()
	return javaLock{p, p.make(r.kind, r.args(path)...) + r.side}
}

func (l javaLock) contender() contender { return l.owner() }

func (l javaLock) owner() *javaThread { return &javaThread{l, newName("thread")} }

type javaThread struct {
	javaLock
	thread string
}

// do has the thread do a command on the lock that does not wait for others.
func (o *javaThread) do(verb string, arguments ...string) []string {
	o.peer.t.Helper()
	return o.peer.jvm.do(
		o.peer.t, o.thread, verb, append([]string{o.name}, arguments...)...,
	)
}

// ask has the thread do a command on the lock that may wait for others.
func (o *javaThread) ask(verb string, arguments ...string) <-chan error {
	asked := o.peer.jvm.ask(o.thread, verb, append([]string{o.name}, arguments...)...)
	return locktest.Start(func() error { return (<-asked).err })
}

func (o *javaThread) acquire() <-chan error { return o.ask("acquire") }

func (o *javaThread) try(wait time.Duration) bool {
	o.peer.t.Helper()
	return o.do("try", strconv.FormatInt(wait.Milliseconds(), 10))[0] == "true"
}

func (o *javaThread) release() {
	o.peer.t.Helper()
	o.do("release")
}

func (o *javaThread) increment(times int, paths ...string) <-chan error {
	return o.ask(
		"increment", append([]string{o.peer.name, strconv.Itoa(times)}, paths...)...,
	)
}

// zkLock is go-zookeeper's own lock, which is a contender for a mutex.
type zkLock struct {
	peer *goPeer
	lock *zk.Lock
}

func (p *goPeer) zkLock(path string) *zkLock {
	return &zkLock{p, zk.NewLock(p.Unwrap(), path, zk.WorldACL(zk.PermAll))}
}

func (l *zkLock) acquire() <-chan error { return locktest.Start(l.lock.Lock) }

// try cannot be asked of it.
func (l *zkLock) try(time.Duration) bool { panic("BUG: zk.Lock cannot try") }

func (l *zkLock) release() {
	l.peer.t.Helper()
	require.NoError(l.peer.t, l.lock.Unlock())
}

func (l *zkLock) increment(times int, paths ...string) <-chan error {
	return locktest.Start(func() error {
		for range times {
			if err := l.lock.Lock(); err != nil {
				return err
			}
			if err := l.peer.add(paths...); err != nil {
				return err
			}
			if err := l.lock.Unlock(); err != nil {
				return err
			}
		}
		return nil
	})
}
