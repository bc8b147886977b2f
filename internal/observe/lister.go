package observe

import (
	"context"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A Listing is the children of a directory.
type Listing struct {
	Children []string
	Pzxid    int64     // of the last create or delete in the directory
	Asked    time.Time // just before the request
	// Proven: the request was sent after the create of the znode that it is to show was
	// answered. A list that is sent right behind the create may overtake it.
	Proven bool
}

// List lists a directory, as the server knows it that answers.
func List(s *zkconn.Conn, dir string) (Listing, error) {
	asked := time.Now()
	children, stat, err := s.Children(dir)
	if err != nil {
		return Listing{}, err
	}
	return Listing{Children: children, Pzxid: stat.Pzxid, Asked: asked}, nil
}

// A Lister lists one directory for one that waits. It sends a sync before a list that
// could otherwise lag behind what was seen before. It belongs to the goroutine that
// waits; until that begins to wait, Reconnect and Begin may be called by the one that
// sends the create. One that joins nothing calls Reconnect before its first list.
type Lister struct {
	S   *zkconn.Conn
	Dir string
	// closed once the connection was away and is back
	Reconnected <-chan struct{}
	// Lagging: the connection was away, and no sync has succeeded since.
	Lagging bool

	first *calls.Pending[Listing] // the list behind the create; nil once it is used
}

// Reconnect arms Reconnected from now on.
func (l *Lister) Reconnect() { l.Reconnected = l.S.Reconnected() }

// Begin sends a list whose answer the next List returns: the one behind a create, which
// is not proven.
func (l *Lister) Begin() {
	s, dir := l.S, l.Dir
	l.first = calls.Start(s, func() (Listing, error) { return List(s, dir) })
}

// Forget forgets an unused answer to Begin, whose create has left no znode.
func (l *Lister) Forget() { l.first = nil }

// List returns the listing of Begin, the first time, and a new one after that.
func (l *Lister) List(ctx context.Context) (Listing, error) {
	if first := l.first; first != nil {
		l.first = nil
		return first.Wait(ctx)
	}
	s, dir, sync := l.S, l.Dir, l.MayLag()
	found, err := calls.Call(ctx, s, func() (Listing, error) {
		if sync {
			if err := s.Sync(dir); err != nil {
				return Listing{}, err
			}
		}
		return List(s, dir)
	})
	l.Lagging = err != nil && sync
	found.Proven = true
	return found, err
}

// ListAndWatch is List for one that waits for others to leave the directory.
func (l *Lister) ListAndWatch(
	ctx context.Context,
) (found Listing, left <-chan zk.Event, err error) {
	if l.MayLag() {
		if err := l.CatchUp(ctx); err != nil {
			return found, nil, err
		}
	}
	children, stat, left, err := l.S.WatchChildren(ctx, l.Dir)
	if err == nil {
		found = Listing{Children: children, Pzxid: stat.Pzxid}
	}
	found.Proven = true
	return found, left, err
}

// CatchUp sends a sync: the server knows then what anybody has seen before.
func (l *Lister) CatchUp(ctx context.Context) error {
	s, dir := l.S, l.Dir
	_, err := calls.Call(ctx, s, func() (none struct{}, err error) {
		return none, s.Sync(dir)
	})
	l.Lagging = err != nil
	return err
}

// MayLag tells whether to sync before the next list: the connection was away, and may
// have come back to a server that lags behind what we have seen.
func (l *Lister) MayLag() bool {
	select {
	case <-l.Reconnected:
		l.Reconnect()
		l.Lagging = true
	default:
	}
	return l.Lagging
}
