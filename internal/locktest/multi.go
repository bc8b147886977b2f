package locktest

import (
	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

// SetConfig is a write to the znode /config.
func SetConfig() *zk.SetDataRequest {
	return &zk.SetDataRequest{Path: "/config", Data: []byte("new"), Version: -1}
}

// A SlowMultiConn sends a transaction only after the lock was released, and its deletes
// when it is told to.
type SlowMultiConn struct {
	*recipes.Client
	Released chan struct{}
	Deletes  chan struct{} // nil: at once
}

// Delete is the Client's, once Deletes is closed.
func (c *SlowMultiConn) Delete(path string, version int32) error {
	if c.Deletes != nil {
		<-c.Deletes
	}
	return c.Client.Delete(path, version)
}

// Multi is the Client's, once Released is closed.
func (c *SlowMultiConn) Multi(ops ...any) ([]zk.MultiResponse, error) {
	<-c.Released
	return c.Client.Multi(ops...)
}
