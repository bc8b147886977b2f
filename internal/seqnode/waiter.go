package seqnode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/session"
)

// A waiter is the first part of a stay in the queue, from the create of its znode until
// that is held or the stay is given up. It is of the goroutine in Enter, EnterN or
// EnterBeside, all of it; what other goroutines may touch is the Node's.
type waiter struct {
	node    *Node
	request Request

	// the list behind the create; nil once it is used
	firstList *session.Pending[listing]
	// closed once the connection was away and is back
	reconnected <-chan struct{}
	lagging     bool  // it was, and no sync has succeeded since
	token       int64 // what is to be the Node's; 0 is unknown
	// by the last list; none where it may be its turn
	position position
	// when the question was put that has no answer yet
	asked time.Time
	told  bool // OnQueued was
	// somebody behind waits for the znode; of a stay that shares it only
	followed bool
}

// A position is what a listing says of one participant.
type position struct {
	ahead   int    // how many are ahead
	blocker string // the path of the one to wait for, "" if it is the participant's turn
	local   *Node  // the blocker, if it is of this process and had not ended
	last    bool   // once the blocker has gone nobody blocks, and nobody can turn up
	next    bool   // nobody stands between the blocker and the participant
	first   bool   // nobody at all is ahead, once the blocker has gone
}

// String says who is ahead, "" if nobody is.
func (p position) String() string {
	if p.blocker == "" {
		return ""
	}
	whose := ""
	if p.local != nil { // maybe the waiter's own, through another value
		whose = ", of this process"
	}
	return fmt.Sprintf("%d ahead, behind %s%s", p.ahead, p.blocker, whose)
}

// look implements aim: it lists the queue until a list tells the waiter's position. It
// retries by itself, with short pauses at first: how many outages the wait has seen
// before says nothing of this one.
func (w *waiter) look(ctx context.Context) (free bool, err error) {
	err = w.node.s.Retry(ctx, func() (err error) {
		var p position
		if p, err = w.place(ctx); err == nil {
			w.position = p
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if !w.told && w.request.OnQueued != nil {
		w.tell()
	}
	w.told = true
	if stay := w.request.stay; stay != nil && !stay.looked(w.position, w.followed) {
		return false, ErrBusy
	}
	return w.position.blocker == "", nil
}

// tell tells the place in the queue. Where the one who is told panics, or ends the
// goroutine, nobody waits any more.
func (w *waiter) tell() {
	told := false
	defer func() {
		if !told {
			w.node.Withdraw()
		}
	}()
	w.request.OnQueued(w.node.Path, w.position.ahead)
	told = true
}

// place finds the znode in the queue. A list that was sent right behind the create may
// have overtaken it, and shows nothing then; in any other a znode that is missing is
// gone.
func (w *waiter) place(ctx context.Context) (position, error) {
	n := w.node
	for {
		if n.s.SessionID() != n.session {
			n.Lose(session.ErrSessionEnded)
		}
		if n.ended.Err() != nil {
			return position{}, errRejoin
		}
		l, err := w.list(ctx)
		if errors.Is(err, zk.ErrNoNode) { // the directory is gone, or was not there yet
			err = nil
		}
		switch {
		case ctx.Err() != nil:
			return position{}, session.Cancelled(ctx)
		case err != nil:
			return position{}, err
		}
		queue := participants(l.children, n.q.Kinds)
		self := slices.IndexFunc(queue, func(m Name) bool {
			return m.Text == n.name.Text
		})
		if self >= 0 {
			n.discardStrays(l.children)
			// Nobody has joined later, so the last change of the directory is our create,
			// or came behind it: a token that is ours, and less than that of those who
			// follow.
			if self == len(queue)-1 && w.token == 0 {
				w.token = l.pzxid
			}
			w.followed = w.request.stay != nil && n.followedIn(queue, self)
			return n.positionIn(queue, self), nil
		}
		if l.proven {
			n.gone(errUnlisted)
		}
	}
}

// positionIn applies the rule. The znodes of this process that have ended do not count:
// their deletes are under way. One under which something can still be done (see yields)
// counts until it is gone, like one of another process.
func (n *Node) positionIn(queue []Name, self int) position {
	for {
		at := n.q.Rule(queue[:self], queue[self])
		if at < 0 {
			return position{ahead: self, first: self == 0}
		}
		p := position{ahead: self, blocker: n.q.Path(queue[at]), next: at == self-1}
		p.local = n.neighbour(p.blocker)
		queue = slices.Delete(queue, at, at+1)
		self--
		if p.local != nil && p.local.ended.Err() != nil {
			if p.local.yields() {
				continue
			}
			p.local = nil
		}
		p.last = n.q.Rule(queue[:self], queue[self]) < 0 && !n.q.Relist
		p.first = self == 0
		return p
	}
}

// followedIn tells whether somebody behind has to wait for n.
func (n *Node) followedIn(queue []Name, self int) bool {
	return slices.ContainsFunc(queue[self+1:], func(m Name) bool {
		return n.q.excludes(queue[self], m)
	})
}

// wait implements aim: it waits for the blocker to go. It is free for certain then if the
// last list showed nobody else in the way and the waiter's own znode was there.
func (w *waiter) wait(ctx context.Context) (free bool, err error) {
	n, p := w.node, &w.position
	w.watchSelf()
	wake := wakers{ended: n.ended.Done(), watchSelf: w.request.WatchSelf}
	if p.local != nil { // its Node tells when it goes
		wake.blocker = p.local.ended.Done()
	} else {
		wake.reconnected, wake.poll = w.reconnected, nextPoll()
		switch wake.watch, err = n.s.Watch(ctx, p.blocker); {
		case errors.Is(err, zk.ErrNoNode): // it went since the list
			return p.last && w.intact(ctx), nil
		case err != nil:
			return false, err
		}
	}
	for {
		by, ev, err := wake.sleep(ctx, n.s)
		if err != nil {
			return false, err
		}
		switch by {
		case blockerEnded:
			// Held with nobody ahead and handed over: whoever stood ahead of it has gone.
			p.first = p.next
			// One that was lost hands nothing over: it may have gone with our own znode.
			return p.local.handedOver() && !n.q.Relist, nil
		case watchFired:
			// The event says that the blocker has gone; that we have not, the watch on
			// our own znode says: both are told in the order in which they happened.
			if errors.Is(ev.Err, zk.ErrClosing) {
				n.s.ConnClosed()
			}
			return p.last && ev.Type == zk.EventNodeDeleted && w.intact(ctx), nil
		case selfEnded:
			return false, errRejoin
		case watchSelfAsked:
			n.WatchSelf()
			wake.watchSelf = nil
		case pollDue:
			// The list can have shown a node of this process before the answer to its
			// create was here.
			if p.local = n.neighbour(p.blocker); p.local != nil {
				return w.wait(ctx)
			}
			if n.s.Missing(ctx, p.blocker) {
				return false, nil
			}
			wake.poll = nextPoll()
		default:
			return false, nil
		}
	}
}

// intact tells whether the waiter's own znode was there when the last event came. What
// happened while the connection was away the client tells in any order, after it is back;
// then only a list can tell.
func (w *waiter) intact(ctx context.Context) bool {
	return w.node.intact(ctx) && !w.node.s.AwaySince(w.reconnected)
}

// watchSelf begins the watch on the own znode as soon as it can matter to a waiter.
func (w *waiter) watchSelf() {
	n, p := w.node, w.position
	switch {
	case w.token == 0: // the token takes a read, and now is the time for it
		n.WatchSelf()
	// The watch on the blocker grants; no list shows whether our znode is there.
	case p.local == nil && p.last:
		n.WatchSelf()
	default: // the list that will tell that the own znode is gone can be hours away
		n.watchSelfLater()
	}
}

// take implements aim. Where no list has told the token it takes a read, which the watch
// on the own znode has most likely made meanwhile.
func (w *waiter) take(ctx context.Context) error {
	first := w.position.first
	w.position, w.asked = position{}, time.Now()
	if w.token == 0 {
		czxid, err := w.node.czxid(ctx)
		if err != nil {
			return err
		}
		w.token = czxid
	}
	return w.node.hold(w.token, first)
}

// list returns the listing that was sent behind the create, the first time, and a new one
// after that.
func (w *waiter) list(ctx context.Context) (listing, error) {
	if first := w.firstList; first != nil {
		w.firstList = nil
		return first.Wait(ctx)
	}
	n, sync := w.node, w.mayLag()
	l, err := session.Call(ctx, n.s, func() (listing, error) {
		if sync {
			if err := n.q.sync(n.s); err != nil {
				return listing{}, err
			}
		}
		return n.q.list(n.s)
	})
	w.lagging = err != nil && sync
	l.proven = true
	return l, err
}

// listAndWatch is list for one who waits for others to leave the directory.
func (w *waiter) listAndWatch(
	ctx context.Context,
) (l listing, left <-chan zk.Event, err error) {
	n := w.node
	if w.mayLag() {
		_, err := session.Call(ctx, n.s, func() (struct{}, error) {
			return struct{}{}, n.q.sync(n.s)
		})
		if w.lagging = err != nil; err != nil {
			return l, nil, err
		}
	}
	children, stat, left, err := n.s.WatchChildren(ctx, n.q.Dir)
	if err == nil {
		l = listing{children: children, pzxid: stat.Pzxid}
	}
	l.proven = true
	return l, left, err
}

// mayLag tells whether to sync before the next list: the connection was away, and may
// have come back to a server that lags behind what we have seen.
func (w *waiter) mayLag() bool {
	select {
	case <-w.reconnected:
		w.reconnected = w.node.s.Reconnected()
		w.lagging = true
	default:
	}
	return w.lagging
}
