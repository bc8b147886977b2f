package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// session is one of ZooKeeper's, as a bare zk.Conn: what raw and zk.Lock go through.
type session struct{ conn *zk.Conn }

// connectZK returns once there is a session.
func connectZK(ctx context.Context, l load.Load, wire *Wire) (session, error) {
	conn, events, err := zk.Connect(l.Servers, SessionTimeout,
		zk.WithDialer(wire.DialPackets), zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		return session{}, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return session{conn}, nil
			}
		case <-ctx.Done():
			conn.Close()
			return session{}, fmt.Errorf(
				"connect to %s: %w", strings.Join(l.Servers, ","), context.Cause(ctx),
			)
		}
	}
}

func (s session) User(ctx context.Context) context.Context { return ctx }

func (s session) Close() error {
	s.conn.Close()
	return nil
}

// countChildren counts those who hold a lock or wait for it: the znodes below path.
func countChildren(
	conn interface {
		Get(path string) ([]byte, *zk.Stat, error)
	}, path string,
) (int, error) {
	_, stat, err := conn.Get(path)
	if errors.Is(err, zk.ErrNoNode) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("count the children of %s: %w", path, err)
	}
	return int(stat.NumChildren), nil
}
