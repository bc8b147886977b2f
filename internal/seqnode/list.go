package seqnode

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// list lists the directory for m, and tells what it shows. All whom one list serves share
// it.
func (c *cohort) list(
	ctx context.Context, m *Member, sync bool,
) (listed, error) {
	c.mu.Lock()
	p := c.listing
	if p == nil || p.Ended() || !c.order.Serves(c.asked, m.self, c.epoch()) {
		p = c.beginListLocked(m.queue, sync)
	}
	c.mu.Unlock()
	return p.Wait(ctx)
}

// beginListLocked sends a list, behind a sync if the server may lag: it knows then what
// anybody has seen before.
func (c *cohort) beginListLocked(q *Queue, sync bool) *calls.Pending[listed] {
	s, epoch := c.key.s, c.epoch()
	asked := c.order.Asking(epoch, false)
	c.asked = asked
	c.listing = calls.Start(s, func() (listed, error) {
		if sync {
			if err := s.Sync(q.Dir); err != nil {
				return listed{}, err
			}
			c.mu.Lock()
			asked = c.order.Asking(epoch, true)
			c.asked = asked
			c.mu.Unlock()
		}
		return c.report(q, q.children(s, asked, epoch))
	})
	return c.listing
}

// report tells what a list has shown, and ends the Members that the list should have
// shown and did not. An answer that came in a later epoch is dropped: the client may have
// sent the request in that one.
func (c *cohort) report(q *Queue, a answer) (listed, error) {
	var l order.Listing // of a directory that does not exist
	switch {
	case errors.Is(a.err, zk.ErrNoNode):
	case a.err != nil:
		return listed{}, a.err
	default:
		names := seqname.Participants(a.children, q.Kinds)
		l = order.Listing{Names: names, Czxid: a.stat.Czxid, Pzxid: a.stat.Pzxid}
	}
	if c.epoch() != a.epoch {
		return listed{}, nil
	}
	c.mu.Lock()
	l.Names = c.directories.without(l.Names, l.Czxid)
	missing, err := c.order.Listed(a.asked, l)
	c.mu.Unlock()
	if err != nil { // the order in it is not certain
		return listed{}, outcome.Permanent(fmt.Errorf("in %s: %w", q.Dir, err))
	}
	for _, m := range missing {
		m.Owner.(*Member).node.Gone(znode.ErrUnlisted)
	}
	return listed{l.Names, q.Lookout.Foreign(a.children, q.Kinds, len(l.Names))}, nil
}

// read reads several participants at once, and tells which are there.
func (c *cohort) read(ctx context.Context, q *Queue, names []seqname.Name) error {
	s, asked := c.key.s, c.asking()
	reads := make([]*calls.Pending[struct{}], len(names))
	for i, n := range names {
		reads[i] = calls.Start(s, func() (none struct{}, err error) {
			stat, err := s.Stat(q.Path(n))
			if err == nil && zkconn.IsDirectory(stat) {
				c.isDirectory(asked, n)
				err = zk.ErrNoNode
			}
			return none, err
		})
	}
	for i, read := range reads {
		switch _, err := read.Wait(ctx); {
		case err == nil:
			c.there(asked, names[i])
		case errors.Is(err, zk.ErrNoNode):
			c.gone(asked, names[i])
		default:
			return err
		}
	}
	return nil
}
