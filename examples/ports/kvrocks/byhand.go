package main

import (
	"context"
	"path"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// A handmade controller leads while the ephemeral znode of the leader has its id, as far
// as it has read.
type handmade struct {
	id     string
	conn   *zk.Conn
	leader atomic.Pointer[string]
	stop   context.CancelFunc
	done   chan bool
}

func byHand(
	ctx context.Context, cluster *zktest.Cluster, id string,
) (controller, error) {
	conn, _, err := zk.Connect(cluster.Names(), sessionTimeout,
		zk.WithDialer(cluster.Link(id).Dial), zk.WithHostProvider(cluster.HostProvider()),
		zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	c := &handmade{id: id, conn: conn, done: make(chan bool)}
	acl := zk.WorldACL(zk.PermAll)
	_, _ = conn.Create(path.Dir(leaderPath), nil, 0, acl) // it may exist
	ctx, c.stop = context.WithCancel(ctx)
	go c.campaign(ctx)
	return c, nil
}

// campaign creates the znode or reads whose it is, again whenever a watch fires. While
// the network is cut no watch fires.
func (c *handmade) campaign(ctx context.Context) {
	defer close(c.done)
	for ctx.Err() == nil {
		_, _ = c.conn.Create(leaderPath, []byte(c.id), zk.FlagEphemeral,
			zk.WorldACL(zk.PermAll)) // if another one was faster, the next line shows it
		data, _, changed, err := c.conn.GetW(leaderPath)
		if err != nil {
			continue
		}
		leader := string(data)
		c.leader.Store(&leader)
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (c *handmade) leads() bool {
	leader := c.leader.Load()
	return leader != nil && *leader == c.id
}

func (c *handmade) close() {
	c.stop()
	c.conn.Close()
	<-c.done
}
