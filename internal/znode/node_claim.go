package znode

import (
	"bytes"
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
)

// isOwn tells whether a znode that was read at n's path is n's.
func (n *Node) isOwn(stat *zk.Stat, _ []byte) bool {
	token := n.Token()
	return n.claim == nil ||
		stat.EphemeralOwner == n.session && (token == 0 || token == stat.Czxid)
}

// Version is that of the znode's data, as far as is known, by which a transaction checks
// that it exists: any, of one whose path no other znode has.
func (n *Node) Version() int32 {
	if n.claim == nil {
		return -1
	}
	return n.version.Load()
}

// Set sets the data of a znode with a given name, and returns once it has them, or n has
// ended. It goes on if ctx is done, for as long as n lasts.
func (n *Node) Set(ctx context.Context, data []byte) error {
	_, err := calls.Call(ctx, n.s, func() (none struct{}, err error) {
		return none, n.s.Retry(n.over.ctx, func() error { return n.set(data) })
	})
	return err
}

func (n *Node) set(data []byte) error {
	stat, err := n.s.Set(n.Path, data, n.Version())
	if errors.Is(err, zk.ErrBadVersion) {
		// Another has set them, or our own request, whose answer was lost.
		if err := n.s.Sync(n.Path); err != nil {
			return err
		}
		var now []byte
		if now, stat, err = n.s.Read(n.Path); err == nil && n.isOwn(stat, nil) {
			n.version.Store(stat.Version)
			// Read leaves out data that is too long.
			if !bytes.Equal(now, data) || int(stat.DataLength) != len(data) {
				return errDataChanged // not final: set again
			}
		}
	}
	switch {
	case errors.Is(err, zk.ErrNoNode), err == nil && !n.isOwn(stat, nil):
		cause := ErrGone
		if n.s.SessionID() != n.session {
			cause = outcome.ErrSessionEnded
		}
		n.Gone(cause)
		return ErrEnded
	case err == nil:
		n.version.Store(stat.Version)
	}
	return err
}
