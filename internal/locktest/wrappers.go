package locktest

import (
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

// A CountingConn counts the znodes that are created through it. It embeds the Conn.
type CountingConn struct {
	recipes.Conn
	Created atomic.Int32
}

// Unwrap returns the wrapped Conn.
func (c *CountingConn) Unwrap() recipes.Conn { return c.Conn }

// Create is the Conn's, and counts.
func (c *CountingConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	c.Created.Add(1)
	return c.Conn.Create(path, data, flags, acl)
}

// A fieldConn keeps the Conn in a field, and hands each method on.
type fieldConn struct{ inner recipes.Conn }

func (c *fieldConn) Unwrap() recipes.Conn { return c.inner }

func (c *fieldConn) Children(path string) ([]string, *zk.Stat, error) {
	return c.inner.Children(path)
}

func (c *fieldConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	return c.inner.Create(path, data, flags, acl)
}

func (c *fieldConn) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	return c.inner.CreateContainer(path, data, flags, acl)
}

func (c *fieldConn) Delete(path string, version int32) error {
	return c.inner.Delete(path, version)
}

func (c *fieldConn) Get(path string) ([]byte, *zk.Stat, error) {
	return c.inner.Get(path)
}

func (c *fieldConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return c.inner.GetW(path)
}

func (c *fieldConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	return c.inner.ChildrenW(path)
}

func (c *fieldConn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	return c.inner.Set(path, data, version)
}

func (c *fieldConn) Sync(path string) (string, error) { return c.inner.Sync(path) }

func (c *fieldConn) Multi(ops ...any) ([]zk.MultiResponse, error) {
	return c.inner.Multi(ops...)
}

func (c *fieldConn) GetACL(path string) ([]zk.ACL, *zk.Stat, error) {
	return c.inner.GetACL(path)
}

func (c *fieldConn) SessionID() int64 { return c.inner.SessionID() }

func (c *fieldConn) State() zk.State { return c.inner.State() }

// ClientWrappers are all the ways to wrap a Client.
var ClientWrappers = map[string]func(c *recipes.Client) recipes.Conn{
	"not wrapped": func(c *recipes.Client) recipes.Conn { return c },
	"embeds a Conn": func(c *recipes.Client) recipes.Conn {
		return &CountingConn{Conn: c}
	},
	"has it in a field": func(c *recipes.Client) recipes.Conn { return &fieldConn{c} },
	"embeds a Client": func(c *recipes.Client) recipes.Conn {
		return struct{ *recipes.Client }{c}
	},
	"twice": func(c *recipes.Client) recipes.Conn {
		return &CountingConn{Conn: &fieldConn{c}}
	},
}
