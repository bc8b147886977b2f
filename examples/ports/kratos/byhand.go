package main

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

type handmade struct {
	conn *zk.Conn
	done chan struct{} // closed with the connection
}

func byHand(
	_ context.Context, cluster *zktest.Cluster, link string,
) (registry, error) {
	conn, _, err := zk.Connect(cluster.Names(), sessionTimeout,
		zk.WithDialer(cluster.Link(link).Dial), zk.WithLogInfo(false),
		zk.WithHostProvider(cluster.HostProvider()))
	if err != nil {
		return nil, err
	}
	return handmade{conn, make(chan struct{})}, nil
}

func (r handmade) register(context.Context) error {
	for _, dir := range []string{"/microservices", parent} {
		if err := r.ensure(dir, 0); err != nil {
			return err
		}
	}
	if err := r.ensure(instance, zk.FlagEphemeral); err != nil {
		return err
	}
	go r.keep(r.conn.SessionID())
	return nil
}

// ensure creates a znode, unless one is there, of whatever session.
func (r handmade) ensure(path string, flags int32) error {
	exists, _, err := r.conn.Exists(path)
	if err != nil || exists {
		return err
	}
	_, err = r.conn.Create(path, []byte(address), flags, zk.WorldACL(zk.PermAll))
	return err
}

// keep registers again in each new session, until the first error.
func (r handmade) keep(session int64) {
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-r.done:
			return
		}
		if now := r.conn.SessionID(); now != 0 && now != session {
			if r.ensure(instance, zk.FlagEphemeral) != nil {
				return
			}
			session = now
		}
	}
}

// deregister deletes the znode, and leaves the loop running that brings it back.
func (r handmade) deregister(ctx context.Context) error {
	deleted := make(chan error, 1)
	go func() { deleted <- r.conn.Delete(instance, -1) }()
	select {
	case err := <-deleted:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r handmade) close() {
	close(r.done)
	r.conn.Close()
}
