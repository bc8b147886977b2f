package main

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// rights compares who may do what with a directory and with the znodes in it. To delete a
// znode is a right on its parent, which may have been created by anybody.
func (d *doctor) rights(
	ctx context.Context, dir, sub string, children []string,
) error {
	open, err := d.aclOf(dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case errors.Is(err, zk.ErrNoAuth):
		d.doubt("%s: no permission to read its ACL", dir)
		return nil
	case err != nil:
		return err
	}
	compared, more := guarded(sub, children)
	if len(compared) == 0 {
		d.ready(dir, open)
		return nil
	}
	var closed []string
	for _, child := range compared {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		node := zkpath.Join(dir, child)
		acl, err := d.aclOf(node)
		hidden := errors.Is(err, zk.ErrNoAuth)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case err != nil && !hidden:
			return err
		}
		if hidden {
			closed = append(closed, node)
		}
		if who, rights := queues.Wider(open, acl, hidden); who != "" {
			d.find("%s: %s has %s on this parent znode, but not on %s: DELETE "+
				"there permits to delete the znodes of others, which lose the lock; set "+
				"the ACL of the znodes on it, or use a path that only users of the "+
				"lock can create", dir, who, rights, node)
			return nil
		}
	}
	d.alike(d.doubt, dir, closed, "may not be read by this session: a client that may "+
		"not read the znode of another cannot wait for it")
	if len(closed) == 0 && more == 0 {
		d.well("%s: nobody has more rights on it than on the znodes in it", dir)
	}
	d.ready(dir, open)
	return nil
}

// ready compares a directory with what zklock would create: who logs in expects a lock
// that is not open to everybody.
func (d *doctor) ready(dir string, open []zk.ACL) {
	if who, rights := queues.Wider(open, d.target.acl, true); who != "" {
		d.doubt("%s: %s has %s on it, which a parent znode that zklock creates with "+
			"these flags does not grant", dir, who, rights)
	}
}

// guarded are the children whose ACL a directory's has to be as strict as, and how many
// more there are.
func guarded(sub string, children []string) (first []string, more int) {
	first, more = cut(queues.Queued(sub, children), lookMost)
	for _, child := range []string{queues.MarkName, observe.LeasesDir, observe.GateDir} {
		if sub == "" && slices.Contains(children, child) {
			first = append(first, child)
		}
	}
	return first, more
}

func (d *doctor) aclOf(path string) ([]zk.ACL, error) {
	acl, _, err := d.client.Unwrap().GetACL(d.client.ServerPath(path))
	return acl, err
}
