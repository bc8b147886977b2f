package recipes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zkrecipes/recipes/internal/lockcache"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A grant is what the holds of one owner share: a znode, or the grants of several locks.
type grant struct {
	token int64
	// lost is done, with the cause, when the lock is lost. That ends the dependents of
	// its holds, and tells the observer, each on another goroutine and in no order.
	lost context.Context

	// Of several locks, or leases: the holds that its hold owns, and what makes a loss of
	// one that of all. Else nil.
	members []*Hold
	lose    context.CancelCauseFunc

	// Of one znode.
	node     backing // what it rests on
	reporter *reporter
	line     line                 // puts its reports in order
	loss     atomic.Pointer[loss] // what Err tells, always the same value; nil: not yet
	// Why no hold can release it, since an election or a registration does; nil: one can.
	unreleasable error
}

// join returns a hold that owns members: lost when one of them is, with the greatest
// token and the path of the last.
func join(members []*Hold) *Hold {
	lost, lose := context.WithCancelCause(context.Background())
	all := &Hold{grant: &grant{lost: lost, members: members, lose: lose}}
	for _, m := range members {
		all.token = max(all.token, m.token)
		m.keep(&dependent{isHold: true, end: func() {
			if m.err() != nil {
				_ = all.err() // makes that the loss of all
			}
			all.endDependents()
		}})
	}
	return all
}

// each returns the grants of single znodes in it.
func (g *grant) each() []*grant {
	if g.members == nil {
		return []*grant{g}
	}
	var all []*grant
	for _, m := range g.members {
		all = append(all, m.each()...)
	}
	return all
}

// lastLeaf returns the last of them, whose path stands for all.
func (g *grant) lastLeaf() *grant {
	for g.members != nil {
		g = g.members[len(g.members)-1].grant
	}
	return g
}

func (g *grant) path() string { return g.lastLeaf().node.path() }

// err is why it was lost.
func (g *grant) err() error {
	if g.members != nil {
		return g.firstLoss()
	}
	if g.lost.Err() == nil {
		return nil
	}
	if g.loss.Load() == nil {
		g.loss.CompareAndSwap(nil, &loss{g.path(), context.Cause(g.lost)})
	}
	return g.loss.Load()
}

// firstLoss is err of several: the first caller that finds a member lost makes that the
// loss of all.
func (g *grant) firstLoss() error {
	for _, m := range g.members {
		if g.lost.Err() != nil {
			break
		}
		if err := m.err(); err != nil && !m.keptByOthers.Load() {
			g.lose(err)
		}
	}
	return context.Cause(g.lost)
}

// until is when it is lost if the servers confirm nothing more; after a loss, when that
// was known.
func (g *grant) until() (at time.Time) {
	if g.members == nil {
		return g.node.Until()
	}
	for _, member := range g.members { // each knows what it was when it was released
		at = znode.Earlier(at, member.Until())
	}
	return at
}

// isUnreliable tells whether it, or a part of it, was given up or lost. It also asks the
// connection, which may not have notified anybody yet.
func (g *grant) isUnreliable() bool {
	return slices.ContainsFunc(g.each(), func(one *grant) bool {
		return one.node.Cause() != nil || one.node.Check() != nil
	})
}

// A backing is what a hold rests on: a znode of its own, or a share of one that is kept.
type backing interface {
	path() string
	// under is the znode under which the owner of a write lock may read, nil where the
	// hold was released meanwhile.
	under() *znode.Node
	Session() int64
	Token() int64
	// Version is by which a transaction checks that the znode exists.
	Version() int32
	Lost() context.Context
	Until() time.Time
	Cause() error
	// Check asks the connection whether it can be relied on at this moment. If not,
	// although nobody may have been notified yet, it is lost.
	Check() error
	Lose(cause error)
	WatchSelf()
	Guard() (unguard func(), ok bool)
	StartLeaving() (awaitDelete func(ctx context.Context) error)
	Withdraw()
}

type (
	soleZnode   struct{ *znode.Node }
	sharedZnode struct{ *lockcache.Share }
)

func (n soleZnode) path() string       { return n.Path }
func (n soleZnode) under() *znode.Node { return n.Node }

func (s sharedZnode) path() string       { return s.Path }
func (s sharedZnode) under() *znode.Node { return s.Under() }

// backedBy is the backing by a znode of its own, if there is no error.
func backedBy(node *znode.Node, err error) (backing, error) {
	if err != nil {
		return nil, err
	}
	return soleZnode{node}, nil
}

// restOn makes g, which is new, the grant that rests on node.
func (g *grant) restOn(node backing, reporter *reporter) *grant {
	g.token, g.lost = node.Token(), node.Lost()
	g.node, g.reporter = node, reporter
	reporter.noteGrant()
	return g
}

// tellAcquired tells of what was acquired after a wait.
func (g *grant) tellAcquired(ctx context.Context, waited time.Duration) {
	g.reporter.report(ctx, Event{
		Kind: EventAcquired, Node: g.path(), Elapsed: waited, Token: g.token, grant: g,
	})
}

// openLine is called once EventAcquired was reported: it tells of a release that came
// meanwhile, and from then on of the loss.
func (g *grant) openLine(ctx context.Context) {
	g.line.leave() // this goroutine has had it since the grant
	ctx = context.WithoutCancel(ctx)
	context.AfterFunc(g.lost, func() {
		g.tellEnd(ctx, Event{Kind: EventLost, Token: g.token, Err: g.err()})
	})
}

// tellReleased tells of a release, unless a loss was reported before.
func (g *grant) tellReleased(ctx context.Context, err error) {
	if g.reporter.observer != nil {
		g.tellEnd(ctx, Event{Kind: EventReleased, Err: err})
	}
}

func (g *grant) tellEnd(ctx context.Context, e Event) {
	e.Node, e.Elapsed = g.path(), time.Since(g.reporter.granted)
	g.line.add(func() { g.reporter.report(ctx, e) }, e.Kind == EventLost)
}

// tellOutcome tells how the release has ended, by the error of the delete, and returns
// what the caller gets.
func (g *grant) tellOutcome(ctx context.Context, err error) error {
	switch loss := g.err(); {
	case err == nil && loss == nil:
		g.tellReleased(ctx, nil)
		return nil
	case errors.Is(loss, znode.ErrGone): // maybe since before the release
		return loss
	case loss != nil:
		return fmt.Errorf("while it was being released: %w", loss)
	case outcome.Final(err):
		g.tellReleased(ctx, err)
		return err
	}
	err = outcome.WithCause(err)
	g.tellReleased(ctx, err)
	return fmt.Errorf(
		"release not confirmed; %s is being deleted in the background: %w", g.path(), err,
	)
}
