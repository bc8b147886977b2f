package recipes

import "github.com/go-zookeeper/zk"

// Conn is the part of a ZooKeeper client that the recipes use. *zk.Conn satisfies it as it is; a wrapper (chroot,
// tracing, fault injection) can stand in.
//
// A Conn is the key of the library's per-connection state, so its dynamic type must be comparable; a pointer is.
// It must be safe for concurrent use, and requests must reach the server in the order in which they were made.
type Conn interface {
	Children(path string) ([]string, *zk.Stat, error)
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	CreateContainer(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Delete(path string, version int32) error
	Get(path string) ([]byte, *zk.Stat, error)
	GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error)
	ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Sync(path string) (string, error)
	SessionID() int64
	State() zk.State
}
