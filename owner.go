package recipes

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// Who owns a lock, in one paragraph. An owner is the identity that ctx carries for this
// lock, else the calling goroutine. Do and Hold.Context put the hold's owner into a ctx,
// where it counts only while that owner holds something of the lock (either side of a
// read/write lock, a member of a multi lock); after that the ctx names nobody. WithOwner
// names one owner for all locks, forever. Each acquisition makes a record, which owns
// what it acquired and nothing else; a Hold is the handle of one record. A lock is
// released when the last record of its owner ends. The record of a multi lock owns its
// members' records.

// An owner is comparable: an identity, or else a goroutine.
type owner struct {
	identity  *identity
	goroutine uint64
}

type identity struct{ _ byte } // not empty: pointers to two of them differ

// aNewOwner is different from every other.
func aNewOwner() owner { return owner{identity: new(identity)} }

// A book guards the records of one lock. The two sides of a read/write lock share it: an
// owner is the same on both. No two books are locked at once.
type book struct {
	mu   sync.Mutex // guards the records; not held across a call to ZooKeeper
	lock interface {
		// isHeldLocked tells whether an owner has acquired and not released something,
		// lost or not. It is called with mu held.
		isHeldLocked(who owner) bool
	}
}

func (b *book) isHeldLocked(who owner) bool { return b.lock.isHeldLocked(who) }

func (b *book) isHeld(who owner) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.isHeldLocked(who)
}

type ownerKey struct{}

// A naming is which owners a ctx names. It does not change.
type naming struct {
	shares []share // by Do and Hold.Context, the latest first
	all    owner   // by WithOwner, for every other lock; zero: by nobody
}

// A share names an owner at the locks of its books, for as long as the owner holds
// something of one of them.
type share struct {
	who   owner
	books []*book
}

func (s share) isOf(b *book) bool { return slices.Contains(s.books, b) }

// isHeldBeside tells whether the owner holds something of another of the locks than b's.
func (s share) isHeldBeside(b *book) bool {
	return slices.ContainsFunc(s.books, func(other *book) bool {
		return other != b && other.isHeld(s.who)
	})
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
	return first.who == s.who && slices.Equal(first.books, s.books)
}

// A caller calls a method of a lock. Who it is can differ from lock to lock.
type caller struct {
	*naming       // what its ctx names; nil: nobody
	fresh   bool  // where ctx names nobody it is a new owner, and not the goroutine
	self    owner // who that is, once it was asked
	nobody  bool  // there is no ctx
}

// callerOf returns the caller of a method with ctx. With a nil ctx it owns nothing.
func callerOf(ctx context.Context) caller {
	if ctx == nil {
		return caller{nobody: true}
	}
	named, _ := ctx.Value(ownerKey{}).(*naming)
	return caller{naming: named}
}

// lock locks b and returns the owner that the caller is at its lock. That is decided
// under the mutex: once the owner of a share holds nothing any more, the share names
// nobody, and two callers who go on with it exclude each other.
func (c *caller) lock(b *book) owner {
	at, named := c.find(b)
	if !named {
		who := c.unnamed()
		b.mu.Lock()
		return who
	}
	b.mu.Lock()
	for i, s := range c.shares {
		if s.isOf(b) && (i == at || b.isHeldLocked(s.who)) {
			return s.who
		}
	}
	if c.all != (owner{}) || c.self != (owner{}) || c.fresh {
		return c.unnamed()
	}
	// To ask which goroutine this is takes long.
	b.mu.Unlock()
	who := c.unnamed()
	b.mu.Lock()
	return who
}

// find tells whether there are shares for b's lock, and which one is known to count,
// since its owner holds another lock of it; -1: none.
func (c *caller) find(b *book) (at int, named bool) {
	if c.naming == nil {
		return -1, false
	}
	for i, s := range c.shares {
		if s.isOf(b) {
			named = true
			if s.isHeldBeside(b) {
				return i, true
			}
		}
	}
	return -1, named
}

// unnamed is who the caller is at a lock of which no share counts.
func (c *caller) unnamed() owner {
	switch {
	case c.nobody:
		return owner{}
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
	b.mu.Unlock()
	return who
}

// know makes sure that whoever the caller is where ctx names nobody is known, for all
// copies of it.
func (c *caller) know() { c.unnamed() }

// owns tells whether h's record is the caller's: if it is a multi lock's, whether those
// of all its members are.
func (c *caller) owns(h *Hold) bool {
	if who, b := h.keeper.owner(); b != nil {
		return c.at(b) == who
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
