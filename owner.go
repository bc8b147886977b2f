package recipes

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
)

// Who owns a lock, in one paragraph. An owner is the identity that ctx carries for this
// lock, else the calling goroutine. Do and Hold.Context put the hold's owner into a ctx,
// where it counts only for the rest of that owner's stay: while it goes on to hold
// something of the lock (either side of a read/write lock, a member of a multi lock) that
// the hold, or since then the ctx, acquired. After that the ctx does not name it, even if
// the owner, such as a goroutine, comes back. WithOwner names one owner for all locks,
// forever. Each acquisition makes a record, which owns what it acquired and nothing else:
// a Hold, which is also its handle. A lock is released when the last record of its owner
// ends. The record of a multi lock owns its members' records.

// An owner is comparable: an identity, or else a goroutine.
type owner struct {
	identity  *identity
	goroutine uint64
}

type identity struct{ _ byte } // not empty: pointers to two of them differ

// aNewOwner is different from every other.
func aNewOwner() owner { return owner{identity: new(identity)} }

// A stay is the time for which an owner goes on to acquire a lock, or to have something
// of it that was not released, lost or not. If the owner comes back, that is another.
type stay struct {
	who  owner
	over atomic.Bool // set with the mutex of the lock's book held

	// Guarded by that mutex.
	owned [2]*ownership // by side, of a reentrant lock
	n     int           // ownerships; of a lease lock records, and calls under way
}

// A book has the records of one lock. The two sides of a read/write lock share it: an
// owner is the same on both. No two books are locked at once, nor two shares.
type book struct {
	mu    sync.Mutex // guards what follows; not held across a call to ZooKeeper
	stays map[owner]*stay
	held  []*Hold // of a lease lock or a multi lock: no two share a grant
}

// all returns what is held.
func (b *book) all() []*Hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.held)
}

// beginLocked returns the stay of a caller that acquires the lock: the one that it is in
// already, or a new one, at memory. It counts one more of what leftLocked ends.
func (b *book) beginLocked(who named, memory *stay) *stay {
	here := b.stays[who.owner]
	if here == nil {
		here = memory
		here.who = who.owner
		b.stays[who.owner] = here
	}
	here.n++
	who.include(here)
	return here
}

// leftLocked ends a stay if its owner has nothing left.
func (b *book) leftLocked(of *stay) {
	if of.n--; of.n == 0 {
		of.over.Store(true)
		delete(b.stays, of.who)
	}
}

// takeLocked takes h's record off, if it was not before (ok). If it was the last one that
// had its grant, the znode is the caller's to delete.
func (b *book) takeLocked(h *Hold) (last, ok bool) {
	last, ok = true, take(&b.held, h)
	if h.stay == nil { // a multi lock's
		return last, ok
	}
	for side, o := range h.stay.owned {
		if o == nil || !take(&o.records, h) {
			continue
		}
		if last, ok = len(o.records) == 0, true; last {
			h.stay.owned[side] = nil
		}
	}
	if last && ok {
		b.leftLocked(h.stay)
	}
	return last, ok
}

// take takes one off a list; false: it was off before.
func take[T comparable](all *[]T, one T) bool {
	at := slices.Index(*all, one)
	if at >= 0 {
		*all = slices.Delete(*all, at, at+1)
	}
	return at >= 0
}

type ownerKey struct{}

// A naming is which owners a ctx names. It does not change.
type naming struct {
	shares []*share // by Do and Hold.Context, the latest first
	all    owner    // by WithOwner, for every other lock; zero: by nobody
}

// A share names an owner at the locks of some books, as long as one of its stays lasts.
type share struct {
	who owner
	at  []place  // at most one of a book
	one [1]place // of a lock, to allocate it with the share

	// mu guards the stays, and comes after that of a book: to see that one lasts, and to
	// begin another because of that, is one step. So a share that is over stays so.
	mu sync.Mutex
}

// A place is a book of a share, and the latest stay there that the share lasts for.
type place struct {
	book *book
	stay *stay
}

func shareOf(b *book, of *stay) *share {
	s := &share{who: of.who}
	s.at = s.one[:0]
	s.include(b, of)
	return s
}

// include makes a stay at b one that the share, which is locked or new, lasts for.
func (s *share) include(b *book, of *stay) {
	if s.placeOf(b) == nil { // it is new
		s.at = append(s.at, place{book: b})
	}
	s.placeOf(b).stay = of
}

// placeOf returns the place of b, nil: the share does not name its owner there.
func (s *share) placeOf(b *book) *place {
	for i := range s.at {
		if s.at[i].book == b {
			return &s.at[i]
		}
	}
	return nil
}

// lockLasting locks the share if it lasts.
func (s *share) lockLasting() bool {
	s.mu.Lock()
	for i := range s.at {
		if !s.at[i].stay.over.Load() {
			return true
		}
	}
	s.mu.Unlock()
	return false
}

// meets tells whether both name somebody at one lock.
func (s *share) meets(other *share) bool {
	for i := range s.at {
		if other.placeOf(s.at[i].book) != nil {
			return true
		}
	}
	return false
}

// equals tells whether s names the owner of other, which is new, at the same locks, for
// as long.
func (s *share) equals(other *share) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.at {
		at := other.placeOf(s.at[i].book)
		if at == nil || at.stay != s.at[i].stay {
			return false
		}
	}
	return s.who == other.who && len(s.at) == len(other.at)
}

// WithOwner returns a ctx that carries a new owner. Use it if several goroutines should
// act as one: with it, or a ctx derived from it, they may re-enter and release any lock
// that the owner holds. It is for all locks, whatever ctx carried before. A nil ctx means
// context.Background().
func WithOwner(ctx context.Context) context.Context {
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithValue(ctx, ownerKey{}, &naming{all: aNewOwner()})
}

// withShares returns a ctx that names those owners, too, before all that ctx names.
func withShares(ctx context.Context, shares []*share) context.Context {
	named, _ := ctx.Value(ownerKey{}).(*naming)
	if named == nil {
		named = &naming{}
	}
	shares = slices.DeleteFunc(shares, named.begins)
	if len(shares) == 0 {
		return ctx
	}
	if len(named.shares) > 0 {
		shares = slices.Concat(shares, named.shares)
	}
	return context.WithValue(ctx, ownerKey{}, &naming{shares: shares, all: named.all})
}

// begins tells whether n names the owner of s before any other, for as long as s does.
func (n *naming) begins(s *share) bool {
	for _, first := range n.shares {
		if first.meets(s) {
			return first.equals(s)
		}
	}
	return n.all == s.who
}

// A caller calls a method of a lock. Who it is can differ from lock to lock.
type caller struct {
	*naming       // what its ctx names; nil: nobody
	fresh   bool  // where ctx names nobody it is a new owner, and not the goroutine
	self    owner // who that is, once it was asked
}

// callerOf returns the caller of a method with ctx. With a nil ctx it owns nothing.
func callerOf(ctx context.Context) caller {
	if ctx == nil {
		return caller{fresh: true}
	}
	named, _ := ctx.Value(ownerKey{}).(*naming)
	return caller{naming: named}
}

// A named is who a caller is at the lock of a book, and the share that says so; nil: none
// does. Both are locked.
type named struct {
	owner owner
	book  *book
	by    *share
}

// include makes a stay there one that the share lasts for: if a ctx named the owner of what
// it acquires, it is to do so at the release, too.
func (n named) include(of *stay) {
	if n.by != nil {
		n.by.include(n.book, of)
	}
}

func (n named) unlock() {
	if n.by != nil {
		n.by.mu.Unlock()
	}
	n.book.mu.Unlock()
}

// lock locks b and returns who the caller is at its lock, for as long as that is locked:
// once a share is over, two callers who go on with it exclude each other.
func (c *caller) lock(b *book) named {
	if c.naming != nil && len(c.shares) > 0 {
		b.mu.Lock()
		for _, s := range c.shares {
			if s.placeOf(b) != nil && s.lockLasting() {
				return named{s.who, b, s}
			}
		}
		b.mu.Unlock()
	}
	who := c.unnamed() // without the mutex: to ask which goroutine this is takes long
	b.mu.Lock()
	return named{owner: who, book: b}
}

// unnamed is who the caller is at a lock of which no share counts. It remembers that, for
// all copies that are made of it later.
func (c *caller) unnamed() owner {
	switch {
	case c.naming != nil && c.all != (owner{}):
		return c.all
	case c.self != (owner{}):
	case c.fresh:
		c.self = aNewOwner()
	default:
		c.self = owner{goroutine: goroutineID()}
	}
	return c.self
}

// at is the owner that the caller is at b's lock.
func (c *caller) at(b *book) owner {
	who := c.lock(b)
	who.unlock()
	return who.owner
}

// owns tells whether h's record is the caller's: if it is a multi lock's, whether those
// of all its members are.
func (c *caller) owns(h *Hold) bool {
	if h.stay != nil {
		return c.at(h.book) == h.stay.who
	}
	return !slices.ContainsFunc(h.owned(), func(member *Hold) bool {
		return !c.owns(member)
	})
}

// goroutineID reads the number from the first line of the stack, "goroutine 18
// [running]:", which is the only place where the runtime tells it. It takes some
// microseconds. Numbers are not used twice in a process.
func goroutineID() uint64 {
	var buf [64]byte
	line := buf[:runtime.Stack(buf[:], false)]
	line = bytes.TrimPrefix(line, []byte("goroutine "))
	number, _, _ := bytes.Cut(line, []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		panic("BUG: recipes: no goroutine number in " + string(line))
	}
	return id
}
