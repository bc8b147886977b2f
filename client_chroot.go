package recipes

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

var _ SessionConn = (*Client)(nil)

// chrootCreate creates path and its parents where they are missing, and tells whether
// path was. It asks first: a server refuses to create in a parent that it protects, also
// what exists there.
func chrootCreate(
	conn *zk.Conn, path string, acl []zk.ACL,
) (created bool, err error) {
	exists, _, err := conn.Exists(path)
	switch {
	case errors.Is(err, zk.ErrNoAuth): // since 3.9.2, of one that exists
		return false, nil
	case exists || err != nil:
		return false, err
	}
	parent := zkpath.Parent(path)
	if parent != "/" {
		if _, err := chrootCreate(conn, parent, acl); err != nil {
			return false, err
		}
	}
	_, err = conn.Create(path, nil, zk.FlagPersistent, acl)
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return false, nil
	case errors.Is(err, zk.ErrNoAuth):
		return false, fmt.Errorf("%w (the session lacks CREATE on %s)", err, parent)
	}
	return true, err
}

// chrootIsMissing tells whether path did not exist when the session began, or later: a
// server has what was done before the sessions that it serves.
func chrootIsMissing(conn *zk.Conn, path string) (missing bool, err error) {
	exists, _, err := conn.Exists(path)
	if errors.Is(err, zk.ErrNoAuth) { // since 3.9.2, of one that exists
		return false, nil
	}
	return !exists && err == nil, err
}

// makeChroot creates the chroot where it is missing. That is logged: it can be a typing
// mistake, and the other processes somewhere else. unsure is what a former try has left
// open: the create was sent, and no answer came.
func (c *Client) makeChroot(unsure *bool) error {
	created, err := chrootCreate(c.zk, c.chroot, c.chrootACL)
	if err == nil && (created || *unsure) {
		c.log.Info("zookeeper: chroot created", "chroot", c.chroot)
	}
	*unsure = *unsure || created && err != nil && !outcome.NotDone(err)
	return err
}

// ServerPath implements SessionConn: path below the chroot, "/" being the chroot itself.
func (c *Client) ServerPath(path string) string {
	if c.isZero() {
		return path
	}
	return zkpath.Join(c.chroot, path)
}

// locate is ServerPath for a path that comes from outside, on a client that may be
// closed. It looks only for what would lead out of the chroot when put behind it; the
// rest of a path's form is checked by zk.
func (c *Client) locate(path string) (string, error) {
	if err := c.unusable(); err != nil {
		return "", err
	}
	if !strings.HasPrefix(path, "/") {
		return "", zk.ErrInvalidPath
	}
	return c.ServerPath(path), nil
}

// locateNew is locate for a znode that is to be created.
func (c *Client) locateNew(path string, flags int32) (string, error) {
	server, err := c.locate(path)
	if err == nil && server != "/" && path == "/" && flags&zk.FlagSequence != 0 {
		// A child of "/" whose name is the number alone; put behind the chroot, the
		// number would make a sibling of it.
		server += "/"
	}
	return server, err
}

// clientPath undoes ServerPath on a path that the server returned.
func (c *Client) clientPath(path string) string {
	switch c.chroot {
	case path:
		return "/"
	case "/":
		return path
	}
	return strings.TrimPrefix(path, c.chroot)
}

// Children returns the names of the children of path.
func (c *Client) Children(path string) ([]string, *zk.Stat, error) {
	path, err := c.locate(path)
	if err != nil {
		return nil, nil, err
	}
	children, stat, err := c.zk.Children(path)
	return children, stat, outcome.Named(err)
}

// ChildrenW is Children with a watch for the next change of the list. The event's Path is
// the server's, with the chroot.
func (c *Client) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	path, err := c.locate(path)
	if err != nil {
		return nil, nil, nil, err
	}
	children, stat, events, err := c.zk.ChildrenW(path)
	return children, stat, events, outcome.Named(err)
}

// Create creates a znode and returns its path, which for a sequential znode ends in the
// number that the server assigned. If the parent is the chroot, and it was deleted
// meanwhile, Create and CreateContainer recreate it as Connect does, or fail.
func (c *Client) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	server, err := c.locateNew(path, flags)
	if err != nil {
		return "", err
	}
	return c.create(path, func() (string, error) {
		return c.zk.Create(server, data, flags, acl)
	})
}

// CreateContainer creates a container znode, which the server deletes some time after its
// last child. flags must be zk.FlagContainer.
func (c *Client) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	server, err := c.locate(path)
	if err != nil {
		return "", err
	}
	return c.create(path, func() (string, error) {
		return c.zk.CreateContainer(server, data, flags, acl)
	})
}

// chrootTries bounds how often the chroot is made anew for one create. More than one
// takes somebody who deletes it again within moments.
const chrootTries = 3

// create makes one create, and where its parent is the chroot, which is missing, the
// chroot before that: it was deleted since Connect made it, by the server if another
// client had made it as a container.
func (c *Client) create(path string, once func() (string, error)) (string, error) {
	created, err := once()
	unsure := false
	belowChroot := c.chroot != "/" && !c.existing && zkpath.Parent(path) == "/"
	for range chrootTries {
		if !belowChroot || !errors.Is(err, zk.ErrNoNode) {
			break
		}
		// What is missing may be a parent of the chroot by now: that is tried again, too.
		if err = c.makeChroot(&unsure); err != nil {
			err = fmt.Errorf("recreate chroot %s: %w", c.chroot, err)
			continue
		}
		created, err = once()
	}
	if err != nil {
		return "", outcome.Named(err)
	}
	return c.clientPath(created), nil
}

// Delete deletes a znode if it has this version; -1 means any version.
func (c *Client) Delete(path string, version int32) error {
	path, err := c.locate(path)
	if err != nil {
		return err
	}
	return c.zk.Delete(path, version)
}

// Get returns the data of path.
func (c *Client) Get(path string) ([]byte, *zk.Stat, error) {
	path, err := c.locate(path)
	if err != nil {
		return nil, nil, err
	}
	data, stat, err := c.zk.Get(path)
	return data, stat, outcome.Named(err)
}

// GetW is Get with a watch for the next change of the data or the deletion of the znode.
// The event's Path is the server's, with the chroot.
func (c *Client) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	path, err := c.locate(path)
	if err != nil {
		return nil, nil, nil, err
	}
	data, stat, events, err := c.zk.GetW(path)
	return data, stat, events, outcome.Named(err)
}

// GetACL returns the ACL of path.
func (c *Client) GetACL(path string) ([]zk.ACL, *zk.Stat, error) {
	path, err := c.locate(path)
	if err != nil {
		return nil, nil, err
	}
	acl, stat, err := c.zk.GetACL(path)
	return acl, stat, outcome.Named(err)
}

// Set replaces the data of a znode if it has this version; -1 means any version.
func (c *Client) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	path, err := c.locate(path)
	if err != nil {
		return nil, err
	}
	return c.zk.Set(path, data, version)
}

// Sync makes the client's server catch up with the leader, so that later reads see what
// was written before.
func (c *Client) Sync(path string) (string, error) {
	path, err := c.locate(path)
	if err != nil {
		return "", err
	}
	synced, err := c.zk.Sync(path)
	if err != nil {
		return "", outcome.Named(err)
	}
	return c.clientPath(synced), nil
}

// SessionID returns the id of the current session, 0 if there is none.
func (c *Client) SessionID() int64 {
	if c.isZero() {
		return 0
	}
	return c.zk.SessionID()
}

// State returns the state of the connection. Only zk.StateHasSession means that a server
// answered.
func (c *Client) State() zk.State {
	if c.isZero() {
		return zk.StateDisconnected
	}
	return c.zk.State()
}

// Multi executes operations in one transaction: all or nothing. Each is a
// *zk.CreateRequest, *zk.DeleteRequest, *zk.SetDataRequest or *zk.CheckVersionRequest,
// which is not changed; anything else gives zk.ErrBadArguments before anything is sent.
// There is a response for each, in order. If one fails, those before it have no error,
// and those after it one that says only that another failed. Multi's error is that of the
// failed operation, or says why nothing was done or the outcome is unknown.
func (c *Client) Multi(ops ...any) ([]zk.MultiResponse, error) {
	if err := c.unusable(); err != nil {
		return nil, err
	}
	located, err := eachOp(ops, c.locateNew)
	if err != nil {
		return nil, err
	}
	responses, err := c.zk.Multi(located...)
	for i, r := range responses {
		if r.String != "" {
			responses[i].String = c.clientPath(r.String)
		}
	}
	return responses, outcome.Named(err)
}
