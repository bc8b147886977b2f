// Package peer has the lock libraries that are compared, each behind the same small
// interfaces: connect, lock, acquire, release, close. What a worker does with them is the
// same code for all. (Curator, in Java, is not here, but in the directory java.)
package peer

import (
	"context"
	"errors"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// SessionTimeout is what all peers ask for: no session or lease ends during a load.
const SessionTimeout = 30 * time.Second

// ErrUnsupported says that a library has no such lock, or no such way to acquire one.
var ErrUnsupported = errors.New("the peer has no such lock")

// Open opens one session of a peer with its service. All traffic goes through the wire.
type Open func(ctx context.Context, l load.Load, wire *Wire) (Client, error)

// A Client is a session.
type Client interface {
	// User returns a ctx that names one user of the locks.
	User(ctx context.Context) context.Context
	// Lock makes what one user needs to use a lock. Not for concurrent use.
	Lock(path string, kind load.Kind) (Lock, error)
	Close() error
}

// A Lock is one user's, for one goroutine.
type Lock interface {
	Acquire(ctx context.Context) error
	Release(ctx context.Context) error
}

// A Trier is a Lock that can give up: false, if others had it all the time.
type Trier interface {
	AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error)
}

// A Counter is a Client that tells how many hold a lock or wait for it, as far as the
// service knows.
type Counter interface {
	Users(ctx context.Context, path string) (int, error)
}

// The names of the Go peers.
const (
	Raw     = "raw"
	ZKLock  = "zk.Lock"
	Recipes = "recipes"
	Cached  = "recipes-cached"
	Etcd    = "etcd"
	Redsync = "redsync"
	// Caching with fewer and more local hand-overs than the 16 of Cached.
	Cached1   = "recipes-cached-1"
	Cached256 = "recipes-cached-256"
)

// A Peer is a library that a Go program uses.
type Peer struct {
	Open      Open
	ZooKeeper bool // this is its service
}

// Find returns the Go peer of this name.
func Find(name string) (Peer, bool) {
	p, ok := map[string]Peer{
		Raw:       {openRaw, true},
		ZKLock:    {openZKLock, true},
		Recipes:   {openRecipes(), true},
		Cached:    {openRecipes(caching(16)), true},
		Cached1:   {openRecipes(caching(1)), true},
		Cached256: {openRecipes(caching(256)), true},
		Etcd:      {openEtcd, false},
		Redsync:   {openRedsync, false},
	}[name]
	return p, ok
}
