package recipes

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// The owner of a call is the identity that its ctx names for this lock (a naming), or
// else the calling goroutine. Each acquisition makes a record, a Hold, which owns what it
// has acquired and nothing else, and is its handle. A lock is released when the last
// record of its owner is. A multi lock's record owns its members'.

// An owner is comparable: an identity, or else a goroutine. Both count from 1.
type owner struct{ identity, goroutine uint64 }

var identities atomic.Uint64 // how many there are in this process

// aNewOwner is different from every other.
func aNewOwner() owner { return owner{identity: identities.Add(1)} }

// A stay is what a book knows of an owner, from its first call that acquires until it has
// neither a call nor a record. If the owner comes back, that is another.
type stay struct {
	who  owner
	book *book
	// The number of the period, a time in which it has records without a break; 0: it has
	// none now. Set with the mutex of the book held.
	period atomic.Uint64

	// Guarded by that mutex.
	owned   [2]*ownership // of a reentrant lock, by side; nil: nothing
	records int           // released or not
	n       int           // of them, and of the calls that acquire
}

var periods atomic.Uint64 // how many there were in this process

// recordLocked makes h, which is new, a record in the stay, until releaseLocked.
func (s *stay) recordLocked(h *Hold) {
	s.n++
	if s.records++; s.records == 1 {
		s.period.Store(periods.Add(1))
	}
	h.book, h.stay, h.period = s.book, s, s.period.Load()
}

// A book has the records of one lock. The two sides of a read/write lock share it: an
// owner is the same on both. No two books are locked at once, nor two namings.
type book struct {
	mu    sync.Mutex // guards what follows; not held across a call to ZooKeeper
	stays map[owner]*stay
	// Of a lease lock or a multi lock, where no two share a grant.
	records []*Hold
}

// some tells whether a record is as asked.
func (b *book) some(is func(h *Hold) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.records, is)
}

// backward yields those that were not released, the latest first. b is not locked
// meanwhile. What is taken off hides none: the others move down.
func (b *book) backward(yield func(h *Hold) bool) {
	for at, more := math.MaxInt, true; more; {
		b.mu.Lock()
		at = latest(b.records[:min(at, len(b.records))])
		var h *Hold
		if at >= 0 {
			h = b.records[at]
		}
		b.mu.Unlock()
		more = h != nil && yield(h)
	}
}

// latest returns the index of the last one that was not released; -1: there is none. One
// that was released is in its list for as long as what depends on it is ending.
func latest(all []*Hold) int {
	at := len(all) - 1
	for at >= 0 && all[at].isReleased() {
		at--
	}
	return at
}

// beginLocked returns the stay of a caller that acquires the lock: the one that it is in
// already, or else fresh. The call counts in it until endCallLocked.
// If a naming (by, which is locked) named the caller, that goes on to do so at this lock
// until it is told of the end of the call.
func (b *book) beginLocked(who owner, by *naming, fresh *stay) *stay {
	here := b.stays[who]
	if here == nil {
		here = fresh
		here.who, here.book = who, b
		b.stays[who] = here
	}
	here.n++
	if by != nil {
		by.at[b].calls++
	}
	return here
}

// endCallLocked ends a call that beginLocked has begun; got: it has made a record.
func (b *book) endCallLocked(of *stay, by *naming, got bool) {
	if by != nil {
		by.called(of, got)
	}
	b.dropLocked(of)
}

func (b *book) dropLocked(of *stay) {
	if of.n--; of.n == 0 {
		delete(b.stays, of.who)
	}
}

// releaseLocked takes a record off its stay.
func (b *book) releaseLocked(of *stay) {
	if of.records--; of.records == 0 {
		of.period.Store(0)
	}
	b.dropLocked(of)
}

// take takes h's record off. If it was the last one that had its grant, the znode is the
// caller's to delete.
func (b *book) take(h *Hold) (last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last = take(&b.records, h)
	if h.stay == nil {
		return last
	}
	for side, o := range h.stay.owned {
		if o != nil && take(&o.records, h) && len(o.records) == 0 {
			h.stay.owned[side], last = nil, true
		}
	}
	b.releaseLocked(h.stay)
	return last
}

// take takes h off a list, where it is the last one or the first most likely; false: it
// was not there.
func take(all *[]*Hold, h *Hold) bool {
	for first, last := 0, len(*all)-1; first <= last; first, last = first+1, last-1 {
		for _, at := range [...]int{last, first} {
			if (*all)[at] == h {
				*all = slices.Delete(*all, at, at+1)
				return true
			}
		}
	}
	return false
}

type ownerKey struct{}

// A naming is what a ctx carries: it names an owner, at every lock forever (WithOwner),
// or for what a hold has acquired (Do, Hold.Context): both sides of a read/write lock,
// all members of a multi lock. That lasts while the owner holds, without a break,
// something that the hold or a later call with this ctx acquired.
type naming struct {
	who   owner
	outer *naming // what counts where this one does not; nil: none

	// mu guards what follows, and comes after that of a book: to see that the naming
	// lasts, and to acquire because of that, is one step. So a naming that is over stays
	// so.
	mu sync.Mutex
	at map[*book]*scope // nil: of WithOwner
}

// A scope is what a naming is about at one lock.
type scope struct {
	of     *stay
	period uint64 // while the stay is in that, the naming lasts, at all its locks
	calls  int    // by the naming, to acquire the lock: while there are, it lasts here
}

// lasts tells whether the owner goes on to hold something, of which n is.
func (n *naming) lasts() bool {
	for _, at := range n.at {
		if at.period != 0 && at.of.period.Load() == at.period {
			return true
		}
	}
	return false
}

// include has n, which is locked, last while its owner goes on to hold what it holds in
// this stay. Other locks at which n was over stay out of it.
func (n *naming) include(of *stay) {
	if !n.lasts() {
		maps.DeleteFunc(n.at, func(b *book, at *scope) bool {
			return b != of.book && at.calls == 0
		})
	}
	at := n.at[of.book]
	at.of, at.period = of, of.period.Load()
}

// called tells of the end of a call that acquires, in a stay; got: it has succeeded.
func (n *naming) called(of *stay, got bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.at[of.book].calls--; got {
		n.include(of)
	}
}

// lockAt locks the naming if it names its owner at b's lock.
func (n *naming) lockAt(b *book) bool {
	n.mu.Lock()
	if at := n.at[b]; at != nil && (at.calls > 0 || n.lasts()) {
		return true
	}
	n.mu.Unlock()
	return false
}

// WithOwner returns a ctx that carries a new owner. Use it if several goroutines should
// act as one: with it, or a ctx derived from it, they may re-enter and release any lock
// that the owner holds. It is for all locks, whatever ctx carried before. A nil ctx means
// context.Background().
func WithOwner(ctx context.Context) context.Context {
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithValue(ctx, ownerKey{}, &naming{who: aNewOwner()})
}

// withOwners returns a ctx that names the owners of the scopes, before all that ctx
// names: each in all of them that are its own, as long as it holds something in one.
func withOwners(ctx context.Context, scopes ...scope) context.Context {
	outer, _ := ctx.Value(ownerKey{}).(*naming)
	all := outer
	for i := range scopes {
		s := &scopes[i]
		who := s.of.who
		if outer != nil && outer.at == nil && outer.who == who {
			continue // ctx names it forever
		}
		n := all
		for n != outer && n.who != who {
			n = n.outer
		}
		if n == outer {
			n = &naming{who: who, outer: all, at: map[*book]*scope{}}
			all = n
		}
		n.at[s.of.book] = s
	}
	if all == outer {
		return ctx
	}
	return context.WithValue(ctx, ownerKey{}, all)
}

// A caller calls a method of a lock. Who it is can differ from lock to lock.
type caller struct {
	naming *naming // of its ctx; nil: none
	self   owner   // who it is where no naming counts; zero: its goroutine, not asked yet
}

// callerOf returns the caller of a method with ctx. With a nil ctx it owns nothing.
func callerOf(ctx context.Context) caller {
	if ctx == nil {
		return caller{self: aNewOwner()}
	}
	n, _ := ctx.Value(ownerKey{}).(*naming)
	return caller{naming: n}
}

// lockFor locks b and returns who the caller is at its lock. That is certain only while b
// is locked: once a naming is over, those who go on with it are no longer one owner. by
// is the naming that gave the answer, if it can end; it is locked, too.
func (b *book) lockFor(c *caller) (who owner, by *naming) {
	b.mu.Lock()
	for n := c.naming; n != nil; n = n.outer {
		switch {
		case n.at == nil:
			return n.who, nil
		case n.lockAt(b):
			return n.who, n
		}
	}
	if c.self == (owner{}) {
		b.mu.Unlock() // to find out which goroutine this is takes long
		c.self = owner{goroutine: goroutineID()}
		b.mu.Lock()
	}
	return c.self, nil
}

func (b *book) unlock(by *naming) {
	if by != nil {
		by.mu.Unlock()
	}
	b.mu.Unlock()
}

// at is the owner that the caller is at b's lock.
func (c *caller) at(b *book) owner {
	who, by := b.lockFor(c)
	b.unlock(by)
	return who
}

// owns tells whether h's record is the caller's: if it is a multi lock's, whether those
// of all its members are.
func (c *caller) owns(h *Hold) bool {
	if h.stay != nil {
		return c.at(h.book) == h.stay.who
	}
	return !slices.ContainsFunc(h.members, func(member *Hold) bool {
		return !c.owns(member)
	})
}
