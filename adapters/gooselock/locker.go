package gooselock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pressly/goose/v3/lock"

	"github.com/zkrecipes/recipes"
)

// New returns a locker for goose.WithLocker: a mutex at path, with its options. A host
// waits for the others as long as its ctx lasts, and then finds nothing to migrate. Use
// one locker for each goose.Provider.
func New(
	conn recipes.Conn, path string, opts ...recipes.Option,
) (lock.Locker, error) {
	return newLocker(conn, path, nil, opts)
}

// NewWaitingAtMost returns a locker as [New] does, with which a host waits for wait at
// most; with 0 or less it waits for no other host. If the time runs out, the error of
// goose matches recipes.ErrBusy: another host migrates. It matches recipes.ErrUnavailable
// if ZooKeeper could not be reached.
func NewWaitingAtMost(
	conn recipes.Conn, path string, wait time.Duration, opts ...recipes.Option,
) (lock.Locker, error) {
	return newLocker(conn, path, []recipes.DoOption{recipes.WaitAtMost(wait)}, opts)
}

func newLocker(
	conn recipes.Conn, path string, wait []recipes.DoOption, opts []recipes.Option,
) (*locker, error) {
	mutex, err := recipes.NewInterProcessMutex(conn, path, opts...)
	if err != nil {
		return nil, err
	}
	return &locker{mutex: mutex, wait: wait}, nil
}

type locker struct {
	mutex *recipes.InterProcessMutex
	wait  []recipes.DoOption

	mu   sync.Mutex // guards what is below
	hold *recipes.Hold
	stop func() // of what ends the ctx at a loss
}

var (
	errHeld = errors.New("a lock that was lost is not released yet; " +
		"use one locker for each goose.Provider")
	errNotHeld = errors.New("gooselock: Unlock without Lock")
)

// Lock is called by goose before it looks for what is to be migrated.
func (l *locker) Lock(ctx context.Context, _ *sql.DB) error {
	hold, err := recipes.Acquire(recipes.WithOwner(ctx), l.mutex, l.wait...)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hold != nil {
		return errors.Join(fmt.Errorf("gooselock: %w", errHeld), hold.Release(ctx))
	}
	l.hold, l.stop = hold, func() {}
	if end, ok := ctx.Value(lossKey{}).(context.CancelCauseFunc); ok {
		lasts := hold.Context(context.WithoutCancel(ctx))
		stop := context.AfterFunc(lasts, func() { end(context.Cause(lasts)) })
		l.stop = func() { stop() } // before the release, which ends lasts too
	}
	return nil
}

// Unlock returns an error if the lock was lost, which goose joins with its own.
func (l *locker) Unlock(ctx context.Context, _ *sql.DB) error {
	l.mu.Lock()
	hold, stop := l.hold, l.stop
	l.hold, l.stop = nil, nil
	l.mu.Unlock()
	if hold == nil {
		return errNotHeld
	}
	stop()
	return hold.Release(ctx)
}

type lossKey struct{}

// WithLoss returns a ctx for methods of goose.Provider, such as Up. It ends with parent,
// and at the loss of a lock that such a method has acquired by a locker of this package,
// with a cause that matches recipes.ErrLockLost. Without it goose goes on migrating.
func WithLoss(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	return context.WithValue(ctx, lossKey{}, cancel), func() { cancel(nil) }
}
