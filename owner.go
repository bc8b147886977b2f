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
// neither a call nor a record. An owner that comes back gets another stay.
type stay struct {
	who  owner
	book *book
	// The number of the period, a time in which it has records without a break; 0: it has
	// none now. Set with the mutex of the book held.
	period atomic.Uint64

	// Guarded by that mutex.
	owned   [2]*ownership // of a reentrant lock, by side; nil: nothing
	records int           // how many it has, also of those that are ending
	uses    int           // of them, and of the calls that acquire
}

var periods atomic.Uint64 // how many there were in this process

// recordLocked makes h, which is new, a record in the stay, until unrecordLocked.
func (s *stay) recordLocked(h *Hold) {
	s.uses++
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

// some tells whether is returns true for a record.
func (b *book) some(is func(h *Hold) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.records, is)
}

// backward yields those that were not released, the latest first. b is not locked
// meanwhile. A record that is taken off hides none: the others move down.
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

// beginCallLocked returns the stay of a caller that acquires the lock: the one that it is
// in already, or else fresh. The call counts in it until endCallLocked. by is the naming,
// locked, that named the caller; nil: none. It lasts here until then, too.
func (b *book) beginCallLocked(who owner, by *naming, fresh *stay) *stay {
	here := b.stays[who]
	if here == nil {
		here = fresh
		here.who, here.book = who, b
		b.stays[who] = here
	}
	here.uses++
	if by != nil {
		by.scopes[b].calls++
	}
	return here
}

// endCallLocked ends a call that beginCallLocked has begun. got is its record; nil: none.
func (b *book) endCallLocked(of *stay, by *naming, got *Hold) {
	if by != nil {
		by.called(of, got)
	}
	b.unuseLocked(of)
}

// unuseLocked takes one off the uses of a stay. The last one ends it.
func (b *book) unuseLocked(of *stay) {
	if of.uses--; of.uses == 0 {
		delete(b.stays, of.who)
	}
}

// unrecordLocked takes a record off its stay.
func (b *book) unrecordLocked(of *stay) {
	if of.records--; of.records == 0 {
		of.period.Store(0)
	}
	b.unuseLocked(of)
}

// take takes h's record off. If it was the last one that had its grant, the znode is the
// caller's to delete.
func (b *book) take(h *Hold) (last bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last = remove(&b.records, h) // no two of these share a grant
	if h.stay == nil {
		return last
	}
	for side, o := range h.stay.owned {
		if o != nil && remove(&o.records, h) && len(o.records) == 0 {
			h.stay.owned[side], last = nil, true
		}
	}
	b.unrecordLocked(h.stay)
	return last
}

// remove takes h off a list, where it is the last one or the first most likely; false: it
// was not there.
func remove(all *[]*Hold, h *Hold) bool {
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
	mu     sync.Mutex
	scopes map[*book]*scope // nil: of WithOwner
}

// A scope is what a naming is about at one lock.
type scope struct {
	of     *stay
	period uint64 // while the stay is in that, the naming lasts, at all its locks
	calls  int    // by the naming, to acquire the lock: while there are, it lasts here
}

// lasts tells whether the owner goes on to hold something, of which n is.
func (n *naming) lasts() bool {
	for _, s := range n.scopes {
		if s.period != 0 && s.of.period.Load() == s.period {
			return true
		}
	}
	return false
}

// include has n, which is locked, last while the stay is in this period. Other locks at
// which n was over stay out of it.
func (n *naming) include(of *stay, period uint64) {
	if !n.lasts() {
		maps.DeleteFunc(n.scopes, func(b *book, s *scope) bool {
			return b != of.book && s.calls == 0
		})
	}
	if s := n.scopes[of.book]; period > s.period { // else a later call was faster
		s.of, s.period = of, period
	}
}

// called tells of the end of a call that acquires, in a stay, and what it got.
func (n *naming) called(of *stay, got *Hold) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.scopes[of.book].calls--; got != nil {
		n.include(of, got.period)
	}
}

// waited tells of the end of a wait that was counted at b's lock.
func (n *naming) waited(b *book) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.scopes[b].calls--
}

// lockAt locks the naming if it names its owner at b's lock.
func (n *naming) lockAt(b *book) bool {
	n.mu.Lock()
	if s := n.scopes[b]; s != nil && (s.calls > 0 || n.lasts()) {
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

// withOwners returns a ctx that names the owner of each scope at its lock, before all
// that ctx names. The scopes of one owner share a naming: it lasts while that holds
// something in one of them.
func withOwners(ctx context.Context, scopes ...scope) context.Context {
	outer, _ := ctx.Value(ownerKey{}).(*naming)
	all := outer
	for i := range scopes {
		s := &scopes[i]
		who := s.of.who
		if outer != nil && outer.scopes == nil && outer.who == who {
			continue // ctx names it forever
		}
		n := all
		for n != outer && n.who != who {
			n = n.outer
		}
		if n == outer {
			n = &naming{who: who, outer: all, scopes: map[*book]*scope{}}
			all = n
		}
		n.scopes[s.of.book] = s
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
		case n.scopes == nil:
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

// ownerAt returns who the caller is at b's lock.
func (c *caller) ownerAt(b *book) owner {
	who, by := b.lockFor(c)
	b.unlock(by)
	return who
}

// owns tells whether h's record is the caller's: if it is a multi lock's, whether those
// of all its members are.
func (c *caller) owns(h *Hold) bool {
	if h.stay != nil {
		return c.ownerAt(h.book) == h.stay.who
	}
	return !slices.ContainsFunc(h.members, func(member *Hold) bool {
		return !c.owns(member)
	})
}
