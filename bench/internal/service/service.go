// Package service has the servers that the locks are kept by, ZooKeeper, etcd and redis,
// all on loopback and of our own, and the lines to them that make a round trip longer.
package service

import (
	"context"
	"errors"
	"fmt"
)

// A Kind is what the servers are.
type Kind string

// The kinds of servers.
const (
	ZooKeeper Kind = "zookeeper"
	Etcd      Kind = "etcd"
	Redis     Kind = "redis"
)

// ErrMissing says that a program is not installed.
var ErrMissing = errors.New("not installed")

// A Service is servers that serve. Several of ZooKeeper or etcd are an ensemble, several
// of redis know nothing of one another, as Redlock wants it.
type Service struct {
	Version string
	Addrs   []string // host:port, of each server
	PIDs    []int    // their processes; none, unless all are on this machine
	close   func() error
}

// Start starts n servers.
func Start(ctx context.Context, kind Kind, n int) (s *Service, err error) {
	switch kind {
	case ZooKeeper:
		s, err = startZooKeeper(ctx, n)
	case Etcd:
		s, err = startEtcd(ctx, n)
	case Redis:
		s, err = startRedis(ctx, n)
	default:
		err = errors.New("there is no such service")
	}
	if err != nil {
		return nil, fmt.Errorf("start %d of %s: %w", n, kind, err)
	}
	return s, nil
}

// Close stops the servers and removes their data.
func (s *Service) Close() error { return s.close() }
