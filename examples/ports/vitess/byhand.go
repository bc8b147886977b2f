package main

import (
	"context"
	"path"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

type handmade struct{ conn *zk.Conn }

func byHand(
	_ context.Context, cluster *zktest.Cluster, link string,
) (process, error) {
	conn, _, err := zk.Connect(cluster.Names(), sessionTimeout,
		zk.WithDialer(cluster.Link(link).Dial), zk.WithLogInfo(false),
		zk.WithHostProvider(cluster.HostProvider()))
	if err != nil {
		return nil, err
	}
	for _, parent := range []string{"/keyspaces", "/keyspaces/commerce", lockPath} {
		_, _ = conn.Create(parent, nil, 0, zk.WorldACL(zk.PermAll)) // it may exist
	}
	return handmade{conn}, nil
}

// lock queues with a sequential ephemeral znode, and waits until it is the first.
func (p handmade) lock(ctx context.Context) (held, error) {
	node, err := p.conn.Create(lockPath+"/", nil, zk.FlagEphemeral|zk.FlagSequence,
		zk.WorldACL(zk.PermAll))
	if err != nil {
		return nil, err
	}
	for {
		queue, _, err := p.conn.Children(lockPath)
		if err != nil {
			return nil, err
		}
		slices.Sort(queue)
		at := slices.Index(queue, path.Base(node))
		if at <= 0 {
			return znode{p.conn, node}, nil
		}
		exists, _, gone, err := p.conn.ExistsW(lockPath + "/" + queue[at-1])
		if err != nil {
			return nil, err
		}
		if !exists {
			continue
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (p handmade) close() { p.conn.Close() }

type znode struct {
	conn *zk.Conn
	path string
}

// check has nothing that it could look at: nobody has watched the znode or the session.
func (znode) check() error { return nil }

func (z znode) unlock(context.Context) error { return z.conn.Delete(z.path, -1) }
