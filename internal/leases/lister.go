package leases

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A listing is the children of a directory.
type listing struct {
	children []string
	pzxid    int64 // of the last create or delete in the directory
	// proven: the request was sent after the create of the znode that it is to show was
	// answered. A list that is sent right behind the create may overtake it.
	proven bool
}

// list lists a directory, with a sync before it if the server may lag.
func list(s *zkconn.Conn, dir string, sync bool) (listing, error) {
	children, stat, err := s.List(dir, sync)
	if err != nil {
		return listing{}, err
	}
	return listing{children: children, pzxid: stat.Pzxid}, nil
}

// A lister lists one directory for a batch. It sends a sync before a list that could
// otherwise lag behind what was seen before. It belongs to the goroutine that waits;
// until that begins to wait, the one that sends the create calls reconnect, forget and
// begin.
type lister struct {
	s   *zkconn.Conn
	dir string
	// closed once the connection was away and is back
	reconnected <-chan struct{}
	// lagging: the connection was away, and no sync has succeeded since.
	lagging bool

	first *calls.Pending[listing] // the list behind the create; nil once it is used
}

// reconnect arms reconnected from now on.
func (l *lister) reconnect() { l.reconnected = l.s.Reconnected() }

// begin sends a list whose answer the next list returns: the one behind a create, which
// is not proven.
func (l *lister) begin() {
	s, dir := l.s, l.dir
	l.first = calls.Start(s, func() (listing, error) { return list(s, dir, false) })
}

// forget forgets an unused answer to begin, whose create has left no znode.
func (l *lister) forget() { l.first = nil }

// list returns the listing of begin, the first time, and a new one after that.
func (l *lister) list(ctx context.Context) (listing, error) {
	if first := l.first; first != nil {
		l.first = nil
		return first.Wait(ctx)
	}
	s, dir, sync := l.s, l.dir, l.mayLag()
	found, err := calls.Call(ctx, s, func() (listing, error) {
		return list(s, dir, sync)
	})
	l.lagging = err != nil && sync
	found.proven = true
	return found, err
}

// listAndWatch is list for a batch that waits for others to leave the directory.
func (l *lister) listAndWatch(
	ctx context.Context,
) (found listing, left <-chan zk.Event, err error) {
	if l.mayLag() {
		err = l.s.CatchUp(ctx, l.dir)
		if l.lagging = err != nil; l.lagging {
			return found, nil, err
		}
	}
	children, stat, left, err := l.s.WatchChildren(ctx, l.dir)
	if err == nil {
		found.children, found.pzxid = children, stat.Pzxid
	}
	found.proven = true
	return found, left, err
}

// mayLag tells whether to sync before the next list: the connection was away, and may
// have come back to a server that lags behind what we have seen.
func (l *lister) mayLag() bool {
	select {
	case <-l.reconnected:
		l.reconnect()
		l.lagging = true
	default:
	}
	return l.lagging
}
