package simulator

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
)

// A gatedConn is the client of a process that can be stopped: the library makes no call while it is, and handles no answer. So a
// call can come long after the look at the connection that led to it. It takes its time also else, where the World has a Pace.
type gatedConn struct {
	*recipes.Client
	ctx  context.Context
	gate *gate
	pace func(call, path string) time.Duration // may be nil
	made atomic.Int64                          // calls
}

var _ recipes.Conn = (*gatedConn)(nil)

// enter begins a call; what it returns ends it.
func (c *gatedConn) enter(call, path string) (leave func()) {
	pass := func(what string) {
		if c.pace != nil {
			pause(c.ctx, c.pace(what, path))
		}
		c.gate.pass(c.ctx)
	}
	pass(call)
	end := fmt.Sprint("end of ", c.made.Add(1))
	return func() { pass(end) }
}

func (c *gatedConn) Children(path string) ([]string, *zk.Stat, error) {
	defer c.enter("children", path)()
	return c.Client.Children(path)
}

func (c *gatedConn) Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	defer c.enter("create", path)()
	return c.Client.Create(path, data, flags, acl)
}

func (c *gatedConn) CreateContainer(path string, data []byte, flags int32, acl []zk.ACL) (string, error) {
	defer c.enter("createcontainer", path)()
	return c.Client.CreateContainer(path, data, flags, acl)
}

func (c *gatedConn) Delete(path string, version int32) error {
	defer c.enter("delete", path)()
	return c.Client.Delete(path, version)
}

func (c *gatedConn) Get(path string) ([]byte, *zk.Stat, error) {
	defer c.enter("get", path)()
	return c.Client.Get(path)
}

func (c *gatedConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	defer c.enter("getw", path)()
	return c.Client.GetW(path)
}

func (c *gatedConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	defer c.enter("childrenw", path)()
	return c.Client.ChildrenW(path)
}

func (c *gatedConn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	defer c.enter("set", path)()
	return c.Client.Set(path, data, version)
}

func (c *gatedConn) Sync(path string) (string, error) {
	defer c.enter("sync", path)()
	return c.Client.Sync(path)
}
