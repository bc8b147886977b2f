package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

type handmade struct {
	conn *zk.Conn
	stop context.CancelFunc // ends the loop
	over context.Context    // done when it is to end
}

func byHand(
	ctx context.Context, cluster *zktest.Cluster, link string,
) (registry, error) {
	conn, _, err := zk.Connect(cluster.Names(), sessionTimeout,
		zk.WithDialer(cluster.Link(link).Dial), zk.WithLogInfo(false),
		zk.WithHostProvider(cluster.HostProvider()))
	if err != nil {
		return nil, err
	}
	over, stop := context.WithCancel(ctx)
	return handmade{conn, stop, over}, nil
}

func (r handmade) register(context.Context) error {
	_, err := r.conn.Create(service, nil, 0, zk.WorldACL(zk.PermAll))
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return err
	}
	if err := r.replace(); err != nil {
		return err
	}
	go r.keep(r.conn.SessionID())
	return nil
}

// replace creates the znode. One that is there is deleted, of whatever session: most
// likely it is left from before a restart.
func (r handmade) replace() error {
	exists, stat, err := r.conn.Exists(instance)
	if err != nil {
		return err
	}
	if exists {
		err := r.conn.Delete(instance, stat.Version)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	_, err = r.conn.Create(instance, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	return err
}

// keep registers again in each new session. It looks at nothing else.
func (r handmade) keep(session int64) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-r.over.Done():
			return
		}
		if now := r.conn.SessionID(); now != 0 && now != session && r.replace() == nil {
			session = now
		}
	}
}

// deregister ends the loop, and tries once to delete the znode.
func (r handmade) deregister(context.Context) error {
	r.stop()
	return r.conn.Delete(instance, -1)
}

func (r handmade) close() {
	r.stop()
	r.conn.Close()
}
