package prove

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
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
	_, err := r.client.Create(r.path, []byte(marker), zk.FlagPersistent, r.acl)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		err = r.isOurs()
	case errors.Is(err, zk.ErrNoNode):
		err = fmt.Errorf("it is not created, since its parent does not exist: %w", err)
	}
	if err != nil {
		return fmt.Errorf("--root %s: %w", r.path, err)
	}
	_, err = r.client.Create(r.path+runningName, nil, zk.FlagEphemeral, r.acl)
	if errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("--root %s: another run uses it, or did a moment ago", r.path)
	}
	if err != nil {
		return err
	}
	return r.empty(ctx, r.path, runningName)
}

// errNotOurs says that a root is not one.
var errNotOurs = errors.New("exists, and no run has made it: give another path")

func (r *root) isOurs() error {
	data, _, err := r.client.Get(r.path)
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
	children, _, err := r.client.Children(path)
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
		switch err := r.client.Delete(path, -1); {
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
