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
// something of the lock (either side of a read/write lock, a member of a multi lock).
// After that the ctx names nobody, even if the owner, such as a goroutine, comes back.
// WithOwner names one owner for all locks, forever. Each acquisition makes a record,
// which owns what it acquired and nothing else; a Hold is the handle of one record. A
// lock is released when the last record of its owner ends. The record of a multi lock
// owns its members' records.

// An owner is comparable: an identity, or else a goroutine.
type owner struct {
	identity  *identity
	goroutine uint64
}

type identity struct{ _ byte } // not empty: pointers to two of them differ

// aNewOwner is different from every other.
func aNewOwner() owner { return owner{identity: new(identity)} }

// A stay is an owner that holds something of a lock, and how long it has: since is a
// number that grows from stay to stay. What it acquires meanwhile belongs to the stay.
type stay struct {
	who   owner
	since int64 // 0: it holds nothing yet
}

// stays counts them, in this process.
var stays atomic.Int64

// A book guards the records of one lock. The two sides of a read/write lock share it: an
// owner is the same on both. No two books are locked at once.
type book struct {
	mu   sync.Mutex // guards the records; not held across a call to ZooKeeper
	lock interface {
		// stayLocked is the one of an owner that has something which it has not released,
		// lost or not, or is acquiring it; nil: it has nothing.
		stayLocked(who owner) *stay
		// takeLocked takes h's record off, if it was not before (ok). The last one of its
		// owner also ends what that has: its znode is the caller's to delete.
		takeLocked(h *Hold) (last, ok bool)
	}

	held records // of a lock that keeps all in one list; guarded by mu
}

// takeLocked implements lock for such a lock: no two records share a grant.
func (b *book) takeLocked(h *Hold) (last, ok bool) { return true, b.held.take(h) }

// all returns the records of such a lock.
func (b *book) all() []*Hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.held)
}

// beginLocked returns the stay of an owner that comes to have something: the one that it
// is in already, or that its ctx names, or a new one, for which there is room. The two
// become one, which is the older: what was acquired by a ctx can be released by it.
func (b *book) beginLocked(named stay, room *stay) *stay {
	here := b.lock.stayLocked(named.who)
	switch {
	case here == nil:
		*room = named
		if room.since == 0 {
			room.since = stays.Add(1)
		}
		return room
	case named.since != 0:
		here.since = min(here.since, named.since)
	}
	return here
}

// shareOf names the owner of a stay at b's lock.
func (b *book) shareOf(of *stay) []share {
	b.mu.Lock()
	defer b.mu.Unlock()
	return []share{{*of, []*book{b}}}
}

// records are those of a lock, or of an owner, the youngest last. Its lock's mutex guards
// them.
type records []*Hold

// take takes one off; false: it was off before.
func (all *records) take(h *Hold) bool {
	at := slices.Index(*all, h)
	if at >= 0 {
		*all = slices.Delete(*all, at, at+1)
	}
	return at >= 0
}

type ownerKey struct{}

// A naming is which owners a ctx names. It does not change.
type naming struct {
	shares []share // by Do and Hold.Context, the latest first
	all    owner   // by WithOwner, for every other lock; zero: by nobody
}

// A share names an owner at the locks of its books, for as long as the owner's stay at
// one of them lasts: one that began later is another.
type share struct {
	stay
	books []*book
}

func (s share) isOf(b *book) bool { return slices.Contains(s.books, b) }

// sinceLocked tells since when the stay at b's lock has lasted; 0: it is over, or is
// another.
func (s share) sinceLocked(b *book) int64 {
	if here := b.lock.stayLocked(s.who); here != nil && here.since <= s.since {
		return here.since
	}
	return 0
}

// sinceBeside tells the same of the other locks than b's.
func (s share) sinceBeside(b *book) (since int64) {
	for _, other := range s.books {
		if other != b && since == 0 {
			other.mu.Lock()
			since = s.sinceLocked(other)
			other.mu.Unlock()
		}
	}
	return since
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
func withShares(ctx context.Context, shares []share) context.Context {
	named, _ := ctx.Value(ownerKey{}).(*naming)
	if named == nil {
		named = &naming{}
	}
	shares = slices.DeleteFunc(shares, func(s share) bool { return named.begins(s) })
	if len(shares) == 0 {
		return ctx
	}
	if len(named.shares) > 0 {
		shares = slices.Concat(shares, named.shares)
	}
	return context.WithValue(ctx, ownerKey{}, &naming{shares: shares, all: named.all})
}

// begins tells whether n names the owner of s before any other, for as long as s does.
func (n *naming) begins(s share) bool {
	at := slices.IndexFunc(n.shares, func(other share) bool {
		return slices.ContainsFunc(other.books, s.isOf)
	})
	if at < 0 {
		return n.all == s.who
	}
	first := n.shares[at]
	return first.stay == s.stay && slices.Equal(first.books, s.books)
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

// lock locks b and returns the owner that the caller is at its lock, with the stay that
// its ctx names. That is decided under the mutex: once the stay of a share is over, the
// share names nobody, and two callers who go on with it exclude each other.
func (c *caller) lock(b *book) stay {
	if at, since, named := c.find(b); named {
		b.mu.Lock()
		for i, s := range c.shares {
			switch {
			case i == at:
				return stay{s.who, since}
			case s.isOf(b) && s.sinceLocked(b) != 0:
				return stay{s.who, s.sinceLocked(b)}
			}
		}
		b.mu.Unlock()
	}
	who := c.unnamed() // without the mutex: to ask which goroutine this is takes long
	b.mu.Lock()
	return stay{who: who}
}

// find tells whether there are shares for b's lock, and which one is known to count, and
// since when, since its owner holds another lock of it; -1: none.
func (c *caller) find(b *book) (at int, since int64, named bool) {
	if c.naming == nil {
		return -1, 0, false
	}
	for i, s := range c.shares {
		if s.isOf(b) {
			named = true
			if since := s.sinceBeside(b); since != 0 {
				return i, since, true
			}
		}
	}
	return -1, 0, named
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
	s := c.lock(b)
	b.mu.Unlock()
	return s.who
}

// owns tells whether h's record is the caller's: if it is a multi lock's, whether those
// of all its members are.
func (c *caller) owns(h *Hold) bool {
	if h.of != nil {
		return c.at(h.book) == h.of.who
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
