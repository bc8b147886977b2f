package seqnode

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/session"
)

// Keeping says for how long a place is kept that could be given up.
type Keeping struct {
	Idle   time.Duration // while nobody uses it, and nobody else wants it
	Passes int           // how often in a row it is passed on while others want it
}

// A place is where the owners of this process, all who come through one connection, stand
// together in a queue with one znode. The owners of a kind that excludes itself have it
// one after the other, in the order in which they came; those of one that does not
// (readers) have it together. It is kept when they have left, until somebody else wants
// it. See the package's page.
type place struct {
	// Set by placeOf.
	key      placeKey
	together bool // whether its owners have it together

	// mu guards what follows, and what stays and Shares say it does. It comes before a
	// Node's; nobody who has it calls ZooKeeper or waits for anything else.
	mu      sync.Mutex
	held    *stay      // the last that was granted, unless it is over
	coming  *stay      // in the queue, or on its way there, for those who wait
	waiting []*arrival // in the order in which they came
	unused  bool       // and another has the key, or will: nobody may come here
	later   bool       // reviewLater is under way
}

type placeKey struct {
	queue crowdKey
	kind  string
}

// places finds the place of a connection, a directory and a kind. It has those that are
// used.
var places sync.Map // placeKey to *place

func placeOf(s *session.Session, q *Queue) *place {
	key := placeKey{crowdKey{s, q.key()}, q.Kind}
	if p, ok := places.Load(key); ok {
		return p.(*place)
	}
	together := !q.excludes(Name{Kind: q.Kind, Seq: 0}, Name{Kind: q.Kind, Seq: 1})
	p, _ := places.LoadOrStore(key, &place{key: key, together: together})
	return p.(*place)
}

// An arrival is an owner who waits for a place.
type arrival struct {
	place   *place
	q       *Queue
	request Request
	queued  chan standing // has room for the latest; sent to with place.mu held
	settled chan struct{} // closed by settle

	// Guarded by place.mu until settled is closed.
	told  bool // something was sent on queued
	early bool // its margin was in the way when it could have been let in; see letIn
	share *Share
	err   error
	where string          // where it stood, of ErrBusy
	left  <-chan struct{} // closed once nothing is left behind that was made for it
}

// EnterKept is Enter for owners who share a place, which is kept as Queue.Keep says.
// An owner who finds it held and free, or to whom it is passed on, asks nothing of
// ZooKeeper, and OnQueued is told nothing where there is no wait.
func (q *Queue) EnterKept(
	ctx context.Context, s *session.Session, r Request,
) (*Share, error) {
	if err := s.Bears(q.LossMargin); err != nil {
		return nil, err
	}
	asked := time.Now()
	for {
		sh, a := placeOf(s, q).arrive(q, r)
		switch {
		case sh != nil:
			return sh, nil
		case a != nil:
			return a.await(ctx, asked)
		}
	}
}

// arrive lets an owner in at once, or lets it wait. It does neither where the place is
// not used any more.
func (p *place) arrive(q *Queue, r Request) (*Share, *arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unused {
		return nil, nil
	}
	if st := p.held; st != nil && len(p.waiting) == 0 && st.isFree() {
		if sh, err := st.admit(q, r); err == nil {
			return sh, nil
		}
	}
	a := &arrival{
		place: p, q: q, request: r,
		queued: make(chan standing, 1), settled: make(chan struct{}),
	}
	p.waiting = append(p.waiting, a)
	p.review()
	if !a.isSettled() {
		if at := p.standing(len(p.waiting) - 1); at.node != "" {
			a.tell(at)
		}
	}
	return nil, a
}

// await waits until the owner is let in.
func (a *arrival) await(ctx context.Context, asked time.Time) (*Share, error) {
	over := false
	defer func() {
		if !over { // OnQueued has panicked, or ended the goroutine
			a.depart(errNobodyWaits)
			a.giveBack()
		}
	}()
	for settled := false; !settled; {
		select {
		case at := <-a.queued:
			a.onQueued(at)
			continue
		case <-a.settled:
		case <-ctx.Done():
			a.depart(session.Cancelled(ctx))
		}
		settled = true
	}
	select {
	case at := <-a.queued: // it has come before
		a.onQueued(at)
	default:
	}
	over = true
	if a.share != nil && ctx.Err() == nil {
		return a.share, nil
	}
	if a.share != nil { // it came too late
		a.giveBack()
		a.err, a.where = session.Cancelled(ctx), "its turn came as the wait was over"
	}
	a.awaitLeft()
	return nil, Standing(a.place.key.queue.s, a.err, a.where, asked)
}

func (a *arrival) onQueued(at standing) {
	if a.request.OnQueued != nil {
		a.request.OnQueued(at.node, at.ahead)
	}
}

func (a *arrival) giveBack() {
	if a.share != nil {
		a.share.Withdraw()
	}
}

// awaitLeft waits, for a time that a caller who gives up can spare.
func (a *arrival) awaitLeft() {
	if a.left == nil {
		return
	}
	select {
	case <-a.left:
	case <-time.After(leaveWithin):
	}
}

// depart ends the wait of an owner who leaves, unless it has ended already.
func (a *arrival) depart(cause error) {
	p := a.place
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.isSettled() {
		return
	}
	at := slices.Index(p.waiting, a)
	a.where = p.where(at)
	p.waiting = slices.Delete(p.waiting, at, at+1)
	a.left = p.leftBehind()
	a.settle(nil, cause)
	p.review()
}

// reviewNow is review, of one who has not locked the place.
func (p *place) reviewNow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.review()
}

// granted ends the part of a stay's goroutine in which it waits; false: there is nothing
// to hold.
func (p *place) granted(st *stay, n *Node, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.coming != st { // it was given up
		if n != nil {
			n.Withdraw()
		}
		return false
	}
	p.coming = nil
	if err != nil {
		for _, a := range p.waiting {
			a.settle(nil, err)
		}
		p.waiting = nil
		p.review()
		return false
	}
	// A stay that was held before, of readers kept apart by a writer who has left since,
	// ends with those who are in it.
	st.node, st.idleSince, p.held = n, time.Now(), st
	// Those for whom it joined, whoever stands behind by now.
	p.letIn()
	n.waive()
	p.review()
	return true
}

// tellQueued returns what is told each time that st has joined the queue.
func (p *place) tellQueued(st *stay) func(node string, ahead int) {
	return func(node string, ahead int) {
		p.mu.Lock()
		defer p.mu.Unlock()
		st.queued = standing{node, ahead}
		for i, a := range p.waiting {
			if p.coming == st && (p.held == nil || !a.told) {
				a.tell(p.standing(i))
			}
		}
	}
}

// What follows is called with place.mu held.

// review decides what is to become of the place. It is called after every change, and
// nobody else decides.
func (p *place) review() {
	p.reviewHeld()
	p.refuseImpatient()
	room := 0
	if p.held != nil {
		room = p.held.room()
	}
	switch {
	case len(p.waiting) == 0 && p.coming != nil:
		p.coming.giveUp(errNobodyWaits)
		p.coming = nil
	case len(p.waiting) > room && p.coming == nil:
		p.coming = p.newStay(p.waiting[0].q)
	}
	if p.held == nil && p.coming == nil && !p.unused {
		p.unused = true
		places.Delete(p.key)
	}
}

// reviewHeld lets in whoever may be, and gives up what nobody here needs, or may keep.
func (p *place) reviewHeld() {
	st := p.held
	if st == nil {
		return
	}
	if len(p.waiting) > 0 && st.isFree() {
		n := p.letIn()
		if st.contended || !st.watched {
			st.passes += n
		}
	}
	switch {
	case st.node.ended.Err() != nil: // it was lost
		st.stopIdle()
		p.held = nil
	case st.users > 0:
	case st.isOver():
		st.leave()
		p.held = nil
	default:
		st.awaitEnd()
	}
}

// letIn lets in the first that waits, and of owners who have the place together all, and
// tells how many that were. One whose margin has begun, or would soon with nothing amiss,
// is passed over for now: those who are in it do not lose it by that.
func (p *place) letIn() (n int) {
	for i := 0; i < len(p.waiting); {
		a := p.waiting[i]
		sh, err := p.held.admit(a.q, a.request)
		a.early = err != nil
		switch {
		case errors.Is(err, ErrGone):
			return n
		case err != nil:
			p.reviewLater()
			i++
		case i == 0:
			p.waiting[0] = nil
			p.waiting = p.waiting[1:]
		default:
			p.waiting = slices.Delete(p.waiting, i, i+1)
		}
		if err == nil {
			a.settle(sh, nil)
			n++
		}
		if !p.together {
			return n
		}
	}
	return n
}

// reviewLater has the place looked at again, for those whose margin was in the way: word
// from the server lets them in, of which nobody tells.
func (p *place) reviewLater() {
	if p.later {
		return
	}
	p.later = true
	p.key.queue.s.After(lookEvery, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.later = false
		p.review()
	})
}

// inTheWay returns the stay that those who wait wait for, nil where that is not the held
// one: of owners who have it together it lets in no more, and they wait beside it.
func (p *place) inTheWay() *stay {
	if p.held != nil && p.together && p.held.room() == 0 {
		return nil
	}
	return p.held
}

// refuseImpatient tells those who do not wait for others that it is not their turn.
func (p *place) refuseImpatient() {
	if p.inTheWay() == nil && (p.coming == nil || p.coming.position.blocker == "") {
		return // nobody knows
	}
	var refused []*arrival
	for i, a := range p.waiting {
		if a.request.TryOnce && !p.isEarly(a) {
			a.where = p.where(i)
			refused = append(refused, a)
		}
	}
	if refused == nil {
		return
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(a *arrival) bool {
		return a.request.TryOnce && !p.isEarly(a)
	})
	for _, a := range refused {
		a.left = p.leftBehind()
		a.settle(nil, ErrBusy)
	}
}

// leftBehind tells when nothing is left that was made for those who have waited, nil
// where there is nothing, or others wait for it.
func (p *place) leftBehind() <-chan struct{} {
	if len(p.waiting) > 0 || p.coming == nil {
		return nil
	}
	return p.coming.run.Done()
}

// isEarly tells whether nobody is in the way of the one who waits but its own margin.
func (p *place) isEarly(a *arrival) bool {
	return a.early && p.held != nil && p.held.isFree()
}

// where says who is ahead of the one who waits at an index, "" if nobody knows.
func (p *place) where(at int) string {
	switch st := p.inTheWay(); {
	case p.isEarly(p.waiting[at]):
		return ""
	case st != nil:
		n := st.node
		// Nobody knows through which values those came who are in it.
		return position{
			ahead: p.standing(at).ahead, blocker: n.Path, local: n, elsewhere: true,
		}.String()
	case p.coming == nil:
		return ""
	}
	where := p.coming.position
	where.ahead += p.before(at)
	return where.String()
}

// standing is what OnQueued is told of the one who waits at an index.
func (p *place) standing(at int) standing {
	switch st := p.inTheWay(); {
	case st != nil:
		return standing{st.node.Path, st.users + p.before(at)}
	case p.coming != nil && p.coming.queued.node != "":
		return standing{p.coming.queued.node, p.coming.queued.ahead + p.before(at)}
	}
	return standing{}
}

// before is how many go before the one who waits at an index.
func (p *place) before(at int) int {
	if p.together {
		return 0
	}
	return at
}

// tell tells the latest.
func (a *arrival) tell(at standing) {
	select {
	case <-a.queued:
	default:
	}
	a.queued <- at
	a.told = true
}

func (a *arrival) settle(sh *Share, err error) {
	a.share, a.err = sh, err
	close(a.settled)
}

func (a *arrival) isSettled() bool { return isDone(a.settled) }
