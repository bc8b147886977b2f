package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// openRaw is the yardstick, and no lock: the least that ZooKeeper can be asked for one. A
// user of a cycle creates a znode of its own and deletes it, and waits for nobody. In a
// hand-over there is one znode, and who waits for it is notified of its end.
func openRaw(ctx context.Context, l load.Load, wire *Wire) (Client, error) {
	s, err := connectZK(ctx, l, wire)
	return raw{s, l.Shape}, err
}

type raw struct {
	session
	shape load.Shape
}

func (r raw) Lock(path string, _ load.Kind) (Lock, error) {
	switch r.shape {
	case load.Cycle:
		_, err := r.conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
		return &rawNode{conn: r.conn, prefix: path + "/n-"}, nil
	case load.HandOver:
		return &rawBaton{conn: r.conn, path: path}, nil
	default:
		return nil, ErrUnsupported
	}
}

// A rawNode is a znode that is created and deleted.
type rawNode struct {
	conn         *zk.Conn
	prefix, path string
}

func (n *rawNode) Acquire(context.Context) (err error) {
	const flags = zk.FlagEphemeral | zk.FlagSequence
	n.path, err = n.conn.Create(n.prefix, nil, flags, zk.WorldACL(zk.PermAll))
	return err
}

func (n *rawNode) Release(context.Context) error { return n.conn.Delete(n.path, -1) }

// A rawBaton is created by the first user; the second one waits until it is gone.
type rawBaton struct {
	conn *zk.Conn
	path string
	ours bool
}

func (b *rawBaton) Acquire(context.Context) error {
	acl := zk.WorldACL(zk.PermAll)
	_, err := b.conn.Create(b.path, nil, zk.FlagEphemeral, acl)
	b.ours = err == nil
	if !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	there, _, gone, err := b.conn.ExistsW(b.path)
	if err == nil && there {
		<-gone
	}
	return err
}

func (b *rawBaton) Release(context.Context) error {
	if !b.ours {
		return nil
	}
	return b.conn.Delete(b.path, -1)
}
