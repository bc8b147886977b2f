package znode

import (
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A Spec is what the znodes of one side of a directory have in common. It does not
// change once the first of them is created.
type Spec struct {
	Dir  string   // the path of the directory
	Kind string   // what the recipe calls its own znodes
	Data []byte   // of the znodes
	ACL  []zk.ACL // of the znodes and of the parents that are created
	Log  *slog.Logger
	// Cached: the znode may stay while nobody uses it, until another participant is queued
	// behind it. Its name says so: see MayBeCached.
	Cached bool
	// Joined is called each time that a znode stands in the directory, and must not wait;
	// nil: nobody cares.
	Joined func(s *zkconn.Conn)
	Terms
}

// Terms say how long a hold can be relied on.
type Terms struct {
	// LossMargin is by how much earlier than necessary Lost is closed when the
	// connection has no confirmed contact, and for how long after that the znode stays;
	// see zkconn.Conn.Hold.
	LossMargin time.Duration
	// MaxHold is after what time a hold expires, with ErrExpired; 0: never.
	MaxHold time.Duration
}

// Check returns an error if the connection cannot tolerate the terms.
func (t Terms) Check(s *zkconn.Conn) error { return s.CheckMargin(t.LossMargin) }
