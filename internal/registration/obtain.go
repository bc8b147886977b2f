package registration

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/wait"
	"github.com/zkrecipes/recipes/internal/znode"
)

// An obtaining is the wait for the name, and for the znode under it. It belongs to the
// Keeper's goroutine.
type obtaining struct {
	*Keeper
	node        *znode.Node // once there is one
	reconnected <-chan struct{}
	rival       <-chan struct{} // another Keeper of this connection has the name
	changed     <-chan zk.Event // of another session's znode
}

// Check implements wait.Goal: it creates the znode, unless that is there.
func (o *obtaining) Check(ctx context.Context) (free bool, err error) {
	if o.node != nil {
		return true, nil
	}
	o.reconnected, o.rival, o.changed = o.conn.Reconnected(), nil, nil
	if !o.named {
		if o.rival = o.name.take(); o.rival != nil {
			return false, o.lookAtRival(ctx)
		}
		o.named = true
	}
	spec := o.spec
	spec.Data, o.applied = o.wanted()
	n, err := o.claim.Create(ctx, &spec, znode.NoHooks{})
	var taken *znode.TakenError
	switch {
	case errors.As(err, &taken):
		o.changed = taken.Events
		o.isTaken(taken)
		return false, nil
	case errors.Is(err, znode.ErrNoDir):
		if err := o.conn.Pause(ctx, o.pace.next()); err != nil {
			return false, err
		}
		return false, errParentDeleted
	case err != nil:
		return false, err
	}
	if o.node = n; o.claim.Differs() {
		o.applied = -1
	}
	return true, nil
}

// errParentDeleted is not permanent.
var errParentDeleted = errors.New("somebody deletes the parent znode")

// lookAtRival reads the znode of another Keeper, which need not be there just now.
func (o *obtaining) lookAtRival(ctx context.Context) error {
	taken, err := calls.Call(ctx, o.conn, func() (*znode.TakenError, error) {
		taken := &znode.TakenError{Path: o.path, Session: o.conn.SessionID()}
		data, stat, err := o.conn.Read(o.path)
		switch {
		case err == nil:
			taken.Session, taken.Data = stat.EphemeralOwner, data
		case !errors.Is(err, zk.ErrNoNode):
			return nil, err
		}
		return taken, nil
	})
	if err == nil {
		o.isTaken(taken)
	}
	return err
}

// Wait implements wait.Goal.
func (o *obtaining) Wait(ctx context.Context) error {
	wake := wait.Wakers{
		Blocker: o.rival, Watch: o.changed, Path: o.path,
		Reconnected: o.reconnected, Poll: wait.NextPoll(),
	}
	by, _, err := wake.Sleep(ctx, o.conn)
	if err == nil && by == wait.WatchFired {
		err = o.conn.Pause(ctx, o.pace.next())
	}
	return err
}

// Commit implements wait.Goal: from now on a loss is told.
func (o *obtaining) Commit(ctx context.Context) error {
	if err := o.node.AwaitToken(ctx); err != nil {
		return err
	}
	return o.node.Hold()
}
