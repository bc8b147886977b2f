package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// believed is for how long an answer is valid without another request.
const believed = 30 * time.Second

// A handmade manager has the lock if the znode names it.
type handmade struct {
	who  identity
	conn *zk.Conn
	seen time.Time // when the znode named it
}

func byHand(
	_ context.Context, cluster *zktest.Cluster, link string, who identity,
) (manager, error) {
	conn, _, err := zk.Connect(cluster.Names(), sessionTimeout,
		zk.WithDialer(cluster.Link(link).Dial), zk.WithLogInfo(false),
		zk.WithHostProvider(cluster.HostProvider()))
	if err != nil {
		return nil, err
	}
	return &handmade{who: who, conn: conn}, nil
}

func (m *handmade) acquire() bool {
	if m.conn.State() != zk.StateHasSession {
		m.seen = time.Time{}
		return false
	}
	if time.Since(m.seen) < believed {
		return true
	}
	data, _, err := m.conn.Get(lockPath)
	if errors.Is(err, zk.ErrNoNode) {
		return m.create()
	}
	var owner identity
	if err != nil || json.Unmarshal(data, &owner) != nil || owner != m.who {
		return false
	}
	m.seen = time.Now() // the znode says who, and not which session
	return true
}

func (m *handmade) create() bool {
	data, err := json.Marshal(m.who)
	if err != nil {
		return false
	}
	_, err = m.conn.Create(lockPath, data, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	if err != nil {
		return false
	}
	m.seen = time.Now()
	return true
}

func (m *handmade) close() { m.conn.Close() }
