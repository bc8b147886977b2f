package session

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A namedConn is a Conn whose refusals name the request. A lost connection is left as it is:
// it says nothing about the request.
type namedConn struct{ Conn }

// The permissions as ZooKeeper calls them.
const (
	permCreate = "CREATE"
	permDelete = "DELETE"
	permRead   = "READ"
	permWrite  = "WRITE"
)

// refusal names the request that err refuses, and the permission on a znode that it takes
// where that is what is missing.
func refusal(op, path string, err error, perm, on string) error {
	switch {
	case !Final(err):
		return err
	// A Conn that says more than this knows better.
	case errors.Is(err, zk.ErrNoAuth) && errors.Unwrap(err) == nil:
		return fmt.Errorf("%s %s: %w (the session lacks %s on %s)", op, path, err, perm, on)
	}
	return fmt.Errorf("%s %s: %w", op, path, err)
}

func (c namedConn) Children(path string) ([]string, *zk.Stat, error) {
	children, stat, err := c.Conn.Children(path)
	return children, stat, refusal("list", path, err, permRead, path)
}

func (c namedConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	created, err := c.Conn.Create(path, data, flags, acl)
	return created, refusal("create", path, err, permCreate, zkpath.Parent(path))
}

func (c namedConn) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	created, err := c.Conn.CreateContainer(path, data, flags, acl)
	return created, refusal("create", path, err, permCreate, zkpath.Parent(path))
}

func (c namedConn) Delete(path string, version int32) error {
	err := c.Conn.Delete(path, version)
	return refusal("delete", path, err, permDelete, zkpath.Parent(path))
}

func (c namedConn) Get(path string) ([]byte, *zk.Stat, error) {
	data, stat, err := c.Conn.Get(path)
	return data, stat, refusal("read", path, err, permRead, path)
}

func (c namedConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	data, stat, events, err := c.Conn.GetW(path)
	return data, stat, events, refusal("read", path, err, permRead, path)
}

func (c namedConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	children, stat, events, err := c.Conn.ChildrenW(path)
	return children, stat, events, refusal("list", path, err, permRead, path)
}

func (c namedConn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	stat, err := c.Conn.Set(path, data, version)
	return stat, refusal("set", path, err, permWrite, path)
}

func (c namedConn) Sync(path string) (string, error) {
	synced, err := c.Conn.Sync(path)
	return synced, refusal("sync", path, err, permRead, path)
}
