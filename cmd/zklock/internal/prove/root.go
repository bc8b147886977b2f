package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// marker is what the data of a root begins with.
const marker = "zklock prove: may be deleted"

const (
	runningName = "/running" // ephemeral: there is a run
	witnessName = "/witness"
)

// A root is the znode that all of a run is below.
type root struct {
	client *recipes.Client
	path   string
	acl    []zk.ACL
	pace   *limiter
}

// claim makes the root, or takes over one that a former run has left.
func (r *root) claim(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanUpWithin)
	defer cancel()
	err := insist(ctx, func() error {
		_, err := r.client.Create(r.path, []byte(marker), zk.FlagPersistent, r.acl)
		return err
	})
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		err = r.isOurs(ctx)
	case errors.Is(err, zk.ErrNoNode):
		err = fmt.Errorf("it is not created, since its parent does not exist: %w", err)
	}
	if err != nil {
		return fmt.Errorf("--root %s: %w", r.path, err)
	}
	if err := r.begin(ctx); err != nil {
		return fmt.Errorf("--root %s: %w", r.path, err)
	}
	return r.empty(ctx, r.path, runningName)
}

// errInUse says that a root is another run's.
var errInUse = errors.New("another run uses it, or did a moment ago")

// begin notes that there is a run.
func (r *root) begin(ctx context.Context) error {
	path, owner := r.path+runningName, int64(0)
	err := insist(ctx, func() error {
		_, err := r.client.Create(path, nil, zk.FlagEphemeral, r.acl)
		return err
	})
	if !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	err = insist(ctx, func() error {
		_, stat, err := r.client.Get(path)
		if err == nil {
			owner = stat.EphemeralOwner
		}
		return err
	})
	if err == nil && owner != r.client.SessionID() {
		err = errInUse
	}
	return err
}

// insist calls until ctx is done, or an error comes that no retry can mend: a connection
// that is lost, as after a pause of the machine, comes back.
func insist(ctx context.Context, call func() error) error {
	for {
		err := call()
		if err == nil || outcome.Final(err) {
			return err
		}
		if faults.Sleep(ctx, pace); ctx.Err() != nil {
			return err
		}
	}
}

// errNotOurs says that a root is not one.
var errNotOurs = errors.New("exists, and no run has made it: give another path")

func (r *root) isOurs(ctx context.Context) error {
	var data []byte
	err := insist(ctx, func() (err error) {
		data, _, err = r.client.Get(r.path)
		return err
	})
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(data, []byte(marker)) {
		return errNotOurs
	}
	return nil
}

// remove deletes the root and all below it.
func (r *root) remove(ctx context.Context) error {
	if err := r.empty(ctx, r.path, ""); err != nil {
		return err
	}
	return r.delete(ctx, r.path)
}

// empty deletes all below a path but one child.
func (r *root) empty(ctx context.Context, path, but string) error {
	if path != r.path && !strings.HasPrefix(path, r.path+"/") {
		panic("BUG: " + path + " is not below " + r.path)
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	var children []string
	err := insist(ctx, func() (err error) {
		children, _, err = r.client.Children(path)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", path, err)
	}
	for _, child := range children {
		if "/"+child == but {
			continue
		}
		if err := r.empty(ctx, path+"/"+child, ""); err != nil {
			return err
		}
		if err := r.delete(ctx, path+"/"+child); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes a znode. One that has got a child meanwhile is emptied again.
func (r *root) delete(ctx context.Context, path string) error {
	for {
		if err := r.wait(ctx); err != nil {
			return err
		}
		switch err := insist(ctx, func() error { return r.client.Delete(path, -1) }); {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return nil
		case errors.Is(err, zk.ErrNotEmpty):
			if err := r.empty(ctx, path, ""); err != nil {
				return err
			}
		default:
			return fmt.Errorf("delete %s: %w", path, err)
		}
	}
}

// wait keeps to the rate, without bursts: workers may have been at it a moment ago.
func (r *root) wait(ctx context.Context) error {
	faults.Sleep(ctx, r.pace.take())
	return context.Cause(ctx)
}
