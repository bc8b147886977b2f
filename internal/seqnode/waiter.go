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
	lagging     bool // it was, and no sync has succeeded since
	// as far as is known; none where it may be its turn
	position position
	passed   *passed // the farthest of whom it is known; nil: nobody
	unsure   bool    // what is known of the queue has to be asked for anew
	// when the question was put that has no answer yet
	asked time.Time
	told  bool // OnQueued was
	met   bool // it has waited for one of another process
	// somebody behind waits for the znode; of a stay that shares it only
	followed bool
}

// A position is what is known of one participant.
type position struct {
	ahead   int     // how many are ahead
	blocker string  // the path of the one to wait for, "" if it is the participant's turn
	passed  *passed // the blocker, once it has gone
	local   *Node   // the blocker, if it is of this process and had not ended
	// the local blocker came through another value: it can be the same owner's
	elsewhere bool
	alone     bool // it is the nearest of this process; nobody has asked about others
	last      bool // once the blocker has gone nobody blocks, and nobody can turn up
	first     bool // nobody at all is ahead, once the blocker has gone
}

// String says who is ahead, "" if nobody is.
func (p position) String() string {
	if p.blocker == "" {
		return ""
	}
	whose := ""
	switch {
	case p.local != nil && p.elsewhere:
		whose = ", of this process (it can be the waiter's own, through another value " +
			"of this path)"
	case p.local != nil:
		whose = ", of this process"
	}
	return fmt.Sprintf("%d ahead, behind %s%s", p.ahead, p.blocker, whose)
}

// look implements aim: it finds out the waiter's position. It retries by itself, with
// short pauses at first: how many outages the wait has seen before says nothing of this
// one.
func (w *waiter) look(ctx context.Context) (free bool, err error) {
	n := w.node
	err = n.s.Retry(ctx, func() (err error) {
		var p position
		if p, err = w.place(ctx); err == nil {
			w.position = p
			n.crowd.tell(n, p)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	if !w.told && w.request.OnQueued != nil {
		n.tellOrWithdraw(func() { w.request.OnQueued(n.Path, w.position.ahead) })
	}
	w.told = true
	if stay := w.request.stay; stay != nil && !stay.looked(w.position, w.followed) {
		return false, ErrBusy
	}
	return w.position.blocker == "", nil
}

// tellOrWithdraw calls tell, which calls code of the user's. If that panics, or ends the
// goroutine, nobody waits any more.
func (n *Node) tellOrWithdraw(tell func()) {
	told := false
	defer func() {
		if !told {
			n.Withdraw()
		}
	}()
	tell()
	told = true
}

// place finds out where the znode stands: behind another of this process, and that is
// enough to know for as long as that one is there; else by what a list has told somebody
// of this process; else by a new list. A list that was sent right behind the create may
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
		if p, ok := w.behindOwn(); ok {
			return p, nil
		}
		if p, ok := w.isNext(ctx); ok {
			return p, nil
		}
		if v, self := w.knownView(); v != nil {
			// Our own znode was there when somebody else has listed it.
			if p := w.positionIn(v, self); p.blocker != "" || w.intact(ctx) {
				return p, nil
			}
		}
		v, proven, err := w.view(ctx)
		switch {
		case ctx.Err() != nil:
			return position{}, session.Cancelled(ctx)
		case err != nil:
			return position{}, err
		}
		n.crowd.learn(v)
		if self, ok := v.find(n.name); ok {
			w.unsure = false
			n.discardStrays(v.queue)
			return w.positionIn(v, self), nil
		}
		if proven {
			n.gone(errUnlisted)
		}
	}
}

// behindOwn is the position behind the nearest of this process that has to go first;
// false where there is none, or a list is under way.
func (w *waiter) behindOwn() (position, bool) {
	n := w.node
	if w.firstList != nil || n.strays {
		return position{}, false
	}
	blocker, ahead := n.crowd.ahead(n)
	if blocker == nil {
		return position{}, false
	}
	return position{
		ahead: ahead, blocker: blocker.Path, local: blocker, alone: true,
		elsewhere: !n.q.isOneWith(blocker.q),
	}, true
}

// knownView returns the last list of this process if it tells all about our place, and
// the index at which it shows us.
func (w *waiter) knownView() (v *view, self int) {
	n := w.node
	if w.firstList != nil || w.unsure || w.mayLag() || n.strays || n.q.Relist {
		return nil, 0
	}
	return n.crowd.known(n)
}

// view returns the list that was sent behind the create, the first time, and after that
// a new one. proven is listing's.
func (w *waiter) view(ctx context.Context) (v *view, proven bool, err error) {
	n := w.node
	if w.firstList == nil && !w.mayLag() && !n.strays {
		v, proven, err = n.crowd.list(ctx, n.q)
	} else {
		var l listing
		l, err = w.list(ctx)
		proven = l.proven
		if err == nil {
			v, err = newView(n.q, l)
		}
	}
	if errors.Is(err, zk.ErrNoNode) { // the directory is gone, or was not there yet
		v, err = &view{}, nil
	}
	return v, proven, err
}

// positionIn applies the rule to a list that shows the znode at the index self.
func (w *waiter) positionIn(v *view, self int) position {
	n := w.node
	if v.foreign != "" { // a list of another value may have shown it
		n.tellOrWithdraw(func() { n.q.tellForeign(v.foreign) })
	}
	// Nobody has joined later, so the last change of the directory is our create, or came
	// behind it: a token that is ours, and less than that of those who follow.
	if self == len(v.queue)-1 {
		n.learnToken(v.pzxid)
	}
	w.followed = w.request.stay != nil && n.followedIn(v.queue, self)
	way := w.way(v, self)
	p := position{ahead: way.count()}
	at := way.next()
	if at < 0 {
		p.first = way.isClear()
		return p
	}
	blocker := way.left[at]
	p.blocker = n.q.Path(blocker)
	if p.local = n.neighbour(p.blocker); p.local != nil && p.local.ended.Err() != nil {
		p.local = nil // something can still be done under it: see yields
	}
	p.elsewhere = p.local != nil && !n.q.isOneWith(p.local.q)
	way.pass(at)
	p.passed = &passed{blocker, way.skipped}
	p.last = way.next() < 0 && !n.q.Relist
	p.first = way.isClear()
	return p
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
		w.met = true
		wake.path, wake.reconnected, wake.poll = p.blocker, w.reconnected, nextPoll()
		switch wake.watch, err = n.s.Watch(ctx, p.blocker); {
		case errors.Is(err, zk.ErrNoNode): // it went since the list
			return w.advance(ctx)
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
		case watchFired:
			if errors.Is(ev.Err, zk.ErrClosing) {
				n.s.ConnClosed()
			}
			if ev.Type == zk.EventNodeDeleted {
				return w.advance(ctx)
			}
			w.unsure = true
			return false, nil
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
				w.unsure = true
				return false, nil
			}
			wake.poll = nextPoll()
		default:
			return false, nil
		}
	}
}

// advance goes on to who is left ahead, as the blocker is said to have gone; free:
// nobody is. That we have not gone as well the watch on our own znode says: events and
// answers come in the order in which they happened.
func (w *waiter) advance(ctx context.Context) (free bool, err error) {
	if !w.intact(ctx) || w.node.q.Relist { // others may have turned up
		w.unsure = true
		return false, nil
	}
	w.passed = w.position.passed
	if w.position.last {
		return true, nil
	}
	v, self := w.knownView()
	if v == nil {
		return false, nil
	}
	return w.ask(ctx, v, self)
}

// A read costs the servers, and us, about as much as some hundred names of a list, but
// fewer bytes than four. So several are worth it instead of a list only where that is
// long, and so many at most are under way.
const (
	askShare  = 64
	askAtMost = 64
)

// ask reads together those who may still be in the way, the nearest first, where they are
// few. free: they have all gone.
func (w *waiter) ask(ctx context.Context, v *view, self int) (free bool, err error) {
	n, way := w.node, w.way(v, self)
	var steps []passed
	var reads []*session.Pending[struct{}]
	for at := way.next(); at >= 0; at = way.next() {
		if len(steps) > 0 && len(steps) >= min(len(v.queue)/askShare, askAtMost) {
			w.unsure = true
			return false, nil
		}
		blocker := way.left[at]
		way.pass(at)
		steps = append(steps, passed{blocker, way.skipped})
	}
	for _, step := range steps {
		reads = append(reads, session.Start(n.s, func() (none struct{}, err error) {
			_, _, err = n.s.Get(n.q.Path(step.name))
			return none, err
		}))
	}
	for i, read := range reads {
		switch _, err := read.Wait(ctx); {
		case err == nil:
			return false, nil // it is there
		case !errors.Is(err, zk.ErrNoNode):
			return false, err
		}
		w.passed = &steps[i]
	}
	w.unsure = !w.intact(ctx)
	w.position.first = way.isClear()
	return !w.unsure, nil
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
	if p.local != nil { // so that its number tells who is next when it leaves
		n.s.LearnBirth(n.q.Dir)
	}
	switch {
	case n.Token() == 0: // the token takes a read, and now is the time for it
		n.WatchSelf()
	// The watch on the blocker grants; no list shows whether our znode is there.
	case p.local == nil && p.last && n.s.InOrder():
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
	if err := w.node.awaitToken(ctx); err != nil {
		return err
	}
	err := w.node.hold(first, w.met)
	if err == nil && w.request.stay == nil { // of a stay each owner has his own time
		w.node.expireLater()
	}
	if err == nil && first && w.node.crowd != nil {
		w.node.crowd.clear(w.node)
	}
	return err
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
