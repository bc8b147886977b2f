package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/zkrecipes/recipes"
)

// DefaultSpacing is how long a lock of [NewLocker] lasts at least.
const DefaultSpacing = 500 * time.Millisecond

// NewLocker returns a locker for gocron.WithDistributedLocker, or for a job of its own,
// gocron.WithDistributedJobLocker. The lock of a job is a mutex at its name below root.
// The options are those of that mutex.
//
// A host whose tick finds the lock held skips the tick: gocron.AfterLockError receives an
// error that matches recipes.ErrBusy. The lock lasts for [DefaultSpacing] at least, also
// if the job is shorter. So a host whose clock is late by less than that skips the tick
// as well. [NewSpacedLocker] sets another duration.
//
// Give each job a name by gocron.WithName. All hosts must use the same.
func NewLocker(
	conn recipes.Conn, root string, opts ...recipes.Option,
) (gocron.Locker, error) {
	return NewSpacedLocker(conn, root, DefaultSpacing, opts...)
}

// NewSpacedLocker returns a locker as [NewLocker] does, whose locks last for spacing at
// least, from when the job begins. Choose more than the ticks of two hosts for one run
// can be apart, and less than there is between two runs. For gocron.DurationJob, whose
// ticks are counted from the start of each process, choose almost the duration: then the
// job runs once in that time, on whichever host is first.
//
// A host keeps the lock by its session: closing the client, or the end of the process,
// releases it earlier.
func NewSpacedLocker(
	conn recipes.Conn, root string, spacing time.Duration, opts ...recipes.Option,
) (gocron.Locker, error) {
	if spacing < 0 {
		return nil, fmt.Errorf("gocronlock: spacing %s is negative", spacing)
	}
	l := &locker{
		conn: conn, root: strings.TrimSuffix(root, "/"), spacing: spacing, opts: opts,
		granted: map[context.Context]*lock{},
	}
	if _, err := l.mutex("job"); err != nil { // what is wrong is wrong for every job
		return nil, err
	}
	return l, nil
}

type locker struct {
	conn    recipes.Conn
	root    string
	spacing time.Duration
	opts    []recipes.Option

	// mu guards granted, the locks of runs whose tasks have not taken theirs, each by
	// the ctx that gocron gives to all runs of one job.
	mu      sync.Mutex
	granted map[context.Context]*lock
}

// A lock is held for one run of a job.
type lock struct {
	of     *locker
	job    context.Context
	hold   *recipes.Hold
	lasts  time.Time // at least until then
	unlock sync.Once
}

func (l *locker) mutex(job string) (*recipes.InterProcessMutex, error) {
	return recipes.NewInterProcessMutex(l.conn, l.root+"/"+znodeOf(job), l.opts...)
}

// znodeOf returns the name of the znode for a job, which may have any name.
func znodeOf(job string) string {
	if strings.Trim(job, ".") == "" { // "." and ".." are none that ZooKeeper accepts
		return strings.ReplaceAll(job, ".", "%2E")
	}
	return url.PathEscape(job)
}

// tasks is how the names of all jobs begin that have a task of this package, and no name
// of their own: the one of a function.
var tasks = reflect.TypeFor[locker]().PkgPath() + "."

// Lock is a single attempt. No run re-enters the lock of another, since each has a mutex
// of its own.
func (l *locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	if key == "" || strings.HasPrefix(key, tasks) {
		return nil, errors.New("gocronlock: the job has no name; use gocron.WithName")
	}
	mutex, err := l.mutex(key)
	if err != nil {
		return nil, err
	}
	hold, err := recipes.Acquire(ctx, mutex, recipes.WaitAtMost(0))
	if err != nil {
		return nil, err
	}
	granted := &lock{
		of: l, job: ctx, hold: hold, lasts: time.Now().Add(l.spacing),
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted[ctx] = granted
	return granted, nil
}

// take returns the hold for the run of a job that begins, and nil if there is none. No
// other run gets it.
func (l *locker) take(job context.Context) *recipes.Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	granted := l.granted[job]
	if granted == nil {
		return nil
	}
	delete(l.granted, job)
	return granted.hold
}

// forget is for a run whose task has not taken the lock.
func (l *locker) forget(granted *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.granted[granted.job] == granted {
		delete(l.granted, granted.job)
	}
}

// Unlock releases the lock, or has it released once it has lasted long enough.
func (k *lock) Unlock(ctx context.Context) (err error) {
	k.unlock.Do(func() {
		k.of.forget(k)
		if left := time.Until(k.lasts); left > 0 {
			time.AfterFunc(left, func() { _ = k.hold.Release(ctx) })
			return
		}
		err = k.hold.Release(ctx)
	})
	return err
}
