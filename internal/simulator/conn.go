package simulator

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A Client is a worker's connection: a *recipes.Client, or a Bare.
type Client interface {
	recipes.Conn
	Close()
}

// A Bare is a Client of which the library gets to see no more than a *zk.Conn has. So it
// knows no session timeout, and hears of a Close only by what comes of it.
type Bare interface {
	Client
	Bare() *zk.Conn // what is inside
}

// A gatedConn is the client of a process that can be stopped: the library makes no call
// while it is, and handles no answer. So a call can come long after the look at the
// connection that led to it. It takes its time also else, where the World has a Pace.
type gatedConn struct {
	client Client
	ctx    context.Context
	gate   *gate
	pace   func(call, path string) time.Duration // may be nil
	late   func(path string) time.Duration       // of events; nil: they are never late
	made   atomic.Int64                          // calls
	closed atomic.Bool                           // by the process
}

var _ zkconn.StandIn = (*gatedConn)(nil)

// A gatedClient is a gatedConn that has all else that a *recipes.Client has. What both
// have is the gatedConn's, which stands less deep.
type gatedClient struct {
	*gatedConn
	rest
}

type rest struct{ *recipes.Client }

// asSeen is what the library sees of the connection.
func (c *gatedConn) asSeen() recipes.Conn {
	if client, ok := c.client.(*recipes.Client); ok {
		return &gatedClient{c, rest{client}}
	}
	return c
}

// StandsFor implements zkconn.StandIn. One whose events come late keeps no order.
func (c *gatedConn) StandsFor(zkconn.Test) zkconn.Client {
	if c.late != nil {
		return c
	}
	if bare, ok := c.client.(Bare); ok {
		return bare.Bare()
	}
	return c.client
}

// passOn returns a channel on which the event of a watch comes late.
func (c *gatedConn) passOn(path string, from <-chan zk.Event) <-chan zk.Event {
	if c.late == nil || from == nil {
		return from
	}
	to := make(chan zk.Event, 1)
	go func() { // until the client is closed, at the latest
		defer close(to)
		if ev, ok := <-from; ok {
			pause(c.ctx, c.late(path))
			to <- ev
		}
	}()
	return to
}

// told is what a wrapper says for the client inside, which does not tell by its errors
// alone that it was closed: see recipes.Conn.
func (c *gatedConn) told(err error) error {
	if errors.Is(err, zk.ErrConnectionClosed) && c.closed.Load() {
		return zk.ErrClosing
	}
	return err
}

// SessionID and State ask nothing of ZooKeeper.
func (c *gatedConn) SessionID() int64 { return c.client.SessionID() }

// State is that of the client.
func (c *gatedConn) State() zk.State { return c.client.State() }

// Multi is what Hold.Multi calls, and the process itself.
func (c *gatedConn) Multi(ops ...any) ([]zk.MultiResponse, error) {
	defer c.enter("multi", "")()
	return c.client.Multi(ops...)
}

func (c *gatedConn) GetACL(path string) ([]zk.ACL, *zk.Stat, error) {
	defer c.enter("getacl", path)()
	acl, stat, err := c.client.GetACL(path)
	return acl, stat, c.told(err)
}

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
	got, stat, err := c.client.Children(path)
	return got, stat, c.told(err)
}

func (c *gatedConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	defer c.enter("create", path)()
	got, err := c.client.Create(path, data, flags, acl)
	return got, c.told(err)
}

func (c *gatedConn) CreateContainer(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	defer c.enter("createcontainer", path)()
	got, err := c.client.CreateContainer(path, data, flags, acl)
	return got, c.told(err)
}

func (c *gatedConn) Delete(path string, version int32) error {
	defer c.enter("delete", path)()
	return c.told(c.client.Delete(path, version))
}

func (c *gatedConn) Get(path string) ([]byte, *zk.Stat, error) {
	defer c.enter("get", path)()
	got, stat, err := c.client.Get(path)
	return got, stat, c.told(err)
}

func (c *gatedConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	defer c.enter("getw", path)()
	got, stat, events, err := c.client.GetW(path)
	return got, stat, c.passOn(path, events), c.told(err)
}

func (c *gatedConn) ChildrenW(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	defer c.enter("childrenw", path)()
	got, stat, events, err := c.client.ChildrenW(path)
	return got, stat, c.passOn(path, events), c.told(err)
}

func (c *gatedConn) Set(path string, data []byte, version int32) (*zk.Stat, error) {
	defer c.enter("set", path)()
	got, err := c.client.Set(path, data, version)
	return got, c.told(err)
}

func (c *gatedConn) Sync(path string) (string, error) {
	defer c.enter("sync", path)()
	got, err := c.client.Sync(path)
	return got, c.told(err)
}
