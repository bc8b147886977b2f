package simulator

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes"
)

// A nameLock makes a lock of a persistent node, whose name one session has at a time: to
// acquire is to have the znode, and to release is to close. So it is of use once. While
// its owner holds it, a lost znode comes back by itself, in a hold that nobody asks for.
type nameLock struct {
	recipes.InterProcessLock // nil, for the interface's unexported methods
	node                     *recipes.PersistentNode
	hold                     *recipes.Hold // of the goroutine that acquires and releases
}

var _ recipes.InterProcessLock = (*nameLock)(nil)

// newNameLock leaves out the options that are for locks alone.
func newNameLock(
	conn recipes.Conn, path string, opts []recipes.Option,
) (*nameLock, error) {
	var ours []recipes.Option
	for _, opt := range opts {
		if _, err := recipes.NewPersistentNode(conn, path, nil, opt); err == nil {
			ours = append(ours, opt)
		}
	}
	node, err := recipes.NewPersistentNode(conn, path, nil, ours...)
	return &nameLock{node: node}, err
}

func (l *nameLock) Acquire(ctx context.Context) error {
	for {
		if err := l.node.Await(ctx); err != nil {
			leave, cancel := context.WithTimeout(
				context.WithoutCancel(ctx), 80*time.Millisecond,
			)
			defer cancel()
			_ = l.node.Close(leave) // it goes on in the background
			return err
		}
		if l.hold = l.node.Hold(); l.hold != nil {
			return nil
		}
	}
}

func (l *nameLock) AcquireTimeout(
	ctx context.Context, timeout time.Duration,
) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, max(timeout, 0), errPatience)
	defer cancel()
	err := l.Acquire(ctx)
	if errors.Is(err, errPatience) {
		err = nil
	}
	return l.hold != nil, err
}

// Release reports the loss of the hold that was acquired, as a lock does.
func (l *nameLock) Release(ctx context.Context) error {
	lost := l.hold.Err()
	if err := l.node.Close(ctx); err != nil && lost == nil {
		return err
	}
	return lost
}

func (l *nameLock) IsAcquiredInThisProcess() bool {
	return l.hold != nil && l.hold.Err() == nil
}

func (l *nameLock) Hold(context.Context) *recipes.Hold { return l.hold }
