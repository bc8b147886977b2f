package locktest

import (
	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

// A HookedConn calls Before and After around each request, if they are not nil. A request
// for which Before returns an error is not made, and has that error.
type HookedConn struct {
	recipes.Conn
	Before func(method, path string) error
	After  func(method string)
}

func (c *HookedConn) around(method, path string, err *error, request func()) {
	if c.Before != nil {
		if *err = c.Before(method, path); *err != nil {
			return
		}
	}
	request()
	if c.After != nil {
		c.After(method)
	}
}

// Children is the Conn's, with the hooks.
func (c *HookedConn) Children(path string) (names []string, stat *zk.Stat, err error) {
	c.around("Children", path, &err, func() { names, stat, err = c.Conn.Children(path) })
	return names, stat, err
}

// ChildrenW is the Conn's, with the hooks.
func (c *HookedConn) ChildrenW(
	path string,
) (names []string, stat *zk.Stat, events <-chan zk.Event, err error) {
	c.around("ChildrenW", path, &err, func() {
		names, stat, events, err = c.Conn.ChildrenW(path)
	})
	return names, stat, events, err
}

// Create is the Conn's, with the hooks.
func (c *HookedConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (created string, err error) {
	c.around("Create", path, &err, func() {
		created, err = c.Conn.Create(path, data, flags, acl)
	})
	return created, err
}

// CreateContainer is the Conn's, with the hooks.
func (c *HookedConn) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (created string, err error) {
	c.around("CreateContainer", path, &err, func() {
		created, err = c.Conn.CreateContainer(path, data, flags, acl)
	})
	return created, err
}

// Delete is the Conn's, with the hooks.
func (c *HookedConn) Delete(path string, version int32) (err error) {
	c.around("Delete", path, &err, func() { err = c.Conn.Delete(path, version) })
	return err
}

// Get is the Conn's, with the hooks.
func (c *HookedConn) Get(path string) (data []byte, stat *zk.Stat, err error) {
	c.around("Get", path, &err, func() { data, stat, err = c.Conn.Get(path) })
	return data, stat, err
}

// GetACL is the Conn's, with the hooks.
func (c *HookedConn) GetACL(path string) (acl []zk.ACL, stat *zk.Stat, err error) {
	c.around("GetACL", path, &err, func() { acl, stat, err = c.Conn.GetACL(path) })
	return acl, stat, err
}

// GetW is the Conn's, with the hooks.
func (c *HookedConn) GetW(
	path string,
) (data []byte, stat *zk.Stat, events <-chan zk.Event, err error) {
	c.around("GetW", path, &err, func() {
		data, stat, events, err = c.Conn.GetW(path)
	})
	return data, stat, events, err
}

// Set is the Conn's, with the hooks.
func (c *HookedConn) Set(
	path string, data []byte, version int32,
) (stat *zk.Stat, err error) {
	c.around("Set", path, &err, func() { stat, err = c.Conn.Set(path, data, version) })
	return stat, err
}

// Sync is the Conn's, with the hooks.
func (c *HookedConn) Sync(path string) (synced string, err error) {
	c.around("Sync", path, &err, func() { synced, err = c.Conn.Sync(path) })
	return synced, err
}
