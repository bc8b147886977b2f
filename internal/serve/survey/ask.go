package survey

import (
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/outcome"
)

// An Op is a kind of request.
type Op int

// The requests of a Survey.
const (
	OpExists Op = iota
	OpList
	OpRead
	OpACL
	OpSync
	ops
)

// String returns the name as metrics have it.
func (o Op) String() string {
	return [ops]string{"exists", "list", "read", "acl", "sync"}[o]
}

// Requests is how many requests were sent, by kind.
type Requests [ops]uint64

// All returns the sum.
func (r Requests) All() (n uint64) {
	for _, one := range r {
		n += one
	}
	return n
}

// An asker sends requests, and counts them.
type asker struct {
	client *recipes.Client
	sent   [ops]atomic.Uint64
}

func (a *asker) requests() (n Requests) {
	for op := range n {
		n[op] = a.sent[op].Load()
	}
	return n
}

func (a *asker) exists(path string) (bool, *zk.Stat, error) {
	a.sent[OpExists].Add(1)
	return a.client.Unwrap().Exists(a.client.ServerPath(path))
}

func (a *asker) list(path string) ([]string, *zk.Stat, error) {
	a.sent[OpList].Add(1)
	return a.client.Children(path)
}

func (a *asker) watch(path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	a.sent[OpList].Add(1)
	return a.client.ChildrenW(path)
}

func (a *asker) read(path string) ([]byte, *zk.Stat, error) {
	a.sent[OpRead].Add(1)
	return a.client.Get(path)
}

func (a *asker) acl(path string) ([]zk.ACL, error) {
	a.sent[OpACL].Add(1)
	acl, _, err := a.client.Unwrap().GetACL(a.client.ServerPath(path))
	return acl, err
}

func (a *asker) sync() error {
	a.sent[OpSync].Add(1)
	_, err := a.client.Sync("/")
	return err
}

// isOfPath tells whether an error is that of a path, and not of the connection: it would
// come again.
func isOfPath(err error) bool {
	return errors.Is(err, zk.ErrNoAuth) || outcome.IsReplyTooLong(outcome.Named(err)) ||
		errors.Is(err, zk.ErrInvalidPath) || errors.Is(err, zk.ErrBadArguments)
}
