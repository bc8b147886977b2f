package recipes

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// An owner is who holds a lock, comparable: the identity that a ctx carries or else a
// goroutine.
type owner struct {
	identity  *identity
	goroutine uint64
}

type identity struct{ _ byte } // not empty: pointers to two of them differ

// An ownedLock knows its owners.
type ownedLock interface {
	// holdOf returns what an owner has acquired and not released, lost or not, else nil.
	holdOf(who owner) *Hold
	// ownerKey is what a ctx knows the lock's owner by, comparable: the two sides of a
	// read/write lock have the same one.
	ownerKey() any
}

type ownerKey struct{}

// owners is what a ctx carries: for which owner it stands, lock by lock. It does not
// change.
type owners struct {
	shared  []perLock    // by Do and Hold.Context; the first for a lock counts
	all     owner        // by WithOwner: every other lock; zero: the goroutine's
	pending *acquisition // of a Do or an Acquire under way; nil: of none
}

type perLock struct {
	lock ownedLock
	who  owner
}

// WithOwner returns a ctx that carries a new owner. Use it if several goroutines should
// act as one: with it, or a ctx derived from it, they may re-enter and release any lock
// that the owner holds. It is for all locks, whatever ctx carried before. A nil ctx means
// context.Background().
func WithOwner(ctx context.Context) context.Context {
	if ctx == nil {
		ctx = context.Background()
	}
	return context.WithValue(ctx, ownerKey{}, &owners{all: aNewOwner()})
}

// ownerOf returns the owner that ctx carries for lock, or the calling goroutine. Of a nil
// ctx it is the zero owner, who holds nothing.
func ownerOf(ctx context.Context, lock ownedLock) owner {
	if ctx == nil {
		return owner{}
	}
	if o, ok := ctx.Value(ownerKey{}).(*owners); ok {
		if who := o.of(lock); who != (owner{}) {
			return who
		}
	}
	return theGoroutine()
}

// theGoroutine is the owner that the calling goroutine is.
func theGoroutine() owner { return owner{goroutine: goroutineID()} }

// aNewOwner is different from every other.
func aNewOwner() owner { return owner{identity: new(identity)} }

// of returns whom the ctx stands for, the zero owner where it is the calling goroutine.
func (o *owners) of(lock ownedLock) owner {
	who := o.known(lock)
	if o.pending != nil {
		who = o.pending.of(lock, who)
	}
	return who
}

// known is of without what is being acquired.
func (o *owners) known(lock ownedLock) owner {
	key := lock.ownerKey()
	for _, s := range o.shared {
		if s.lock.ownerKey() == key {
			return s.who
		}
	}
	return o.all
}

// ownersOf returns what ctx carries, the zero owners if that is nothing.
func ownersOf(ctx context.Context) owners {
	if o, ok := ctx.Value(ownerKey{}).(*owners); ok {
		return *o
	}
	return owners{}
}

// withShares returns a ctx that stands for those owners, each at its lock.
func withShares(ctx context.Context, shares []perLock) context.Context {
	if len(shares) == 0 {
		return ctx
	}
	o := ownersOf(ctx)
	shares = slices.DeleteFunc(slices.Clone(shares), func(s perLock) bool {
		return o.known(s.lock) == s.who
	})
	if len(shares) == 0 {
		return ctx
	}
	o.shared = append(shares, o.shared...)
	return context.WithValue(ctx, ownerKey{}, &o)
}

// An acquisition finds out which locks a Do or an Acquire acquires. They may be behind a
// lock of the caller's own kind, of which nothing else is known.
type acquisition struct {
	who owner // who acquires what the ctx knows no owner of

	mu    sync.Mutex // guards what follows
	over  bool
	asked []perLock
	// what an Acquire has acquired meanwhile, as an owner of its own, for a lock of the
	// caller's own kind
	inner []perLock
}

// takeShared takes lock for the owner that ctx carries, or else for that of newOwner. A
// ctx with what it returns as acquired stands for that owner, on any goroutine, and so
// does one of Hold.Context.
func takeShared(
	ctx context.Context, lock InterProcessLock, l bound, newOwner func() owner,
) (got taken, acquired []perLock, err error) {
	o := ownersOf(ctx)
	if o.all != (owner{}) && !hasCustom(lock) { // ctx and the hold carry it anyhow
		got, err = take(ctx, lock, l)
		return got, nil, err
	}
	if r := unobserved(lock); r != nil && o.pending == nil {
		who := o.known(r)
		if who == (owner{}) {
			who = newOwner()
		}
		hold, err := r.acquireOwned(ctx, who, l)
		if err != nil {
			return taken{}, nil, err
		}
		return taken{hold: hold}, nil, nil // whose hold carries it
	}
	return takeTelling(ctx, lock, l, o, newOwner)
}

// takeTelling is takeShared with a ctx that finds out which locks are acquired.
func takeTelling(
	ctx context.Context, lock InterProcessLock, l bound, o owners, newOwner func() owner,
) (got taken, acquired []perLock, err error) {
	a := &acquisition{}
	if o.all == (owner{}) {
		a.who = newOwner()
	}
	defer a.end()
	o.pending = a
	got, err = take(context.WithValue(ctx, ownerKey{}, &o), lock, l)
	if err != nil {
		return taken{}, nil, err
	}
	return got, a.end(), nil
}

// unobserved returns what lock is if no code of the caller's runs as it is acquired, so
// that nobody asks the ctx who acquires it; else nil.
func unobserved(lock InterProcessLock) *reentrant {
	own, ok := native(lock)
	if !ok {
		return nil
	}
	if r, ok := own.(interface{ itself() *reentrant }); ok {
		if r := r.itself(); r != nil && r.steps.observer == nil {
			return r
		}
	}
	return nil
}

// of takes note that the owner who, or else the acquisition's, asks for lock.
func (a *acquisition) of(lock ownedLock, who owner) owner {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return who
	}
	if who == (owner{}) {
		who = a.innerLocked(lock)
	}
	if s := (perLock{lock, who}); !slices.Contains(a.asked, s) {
		a.asked = append(a.asked, s)
	}
	return who
}

// innerLocked returns the owner by which an Acquire has acquired lock and not released
// it, else the acquisition's. It is called with mu held.
func (a *acquisition) innerLocked(lock ownedLock) owner {
	key := lock.ownerKey()
	for _, s := range a.inner {
		if s.lock.ownerKey() == key && s.lock.holdOf(s.who) != nil {
			return s.who
		}
	}
	return a.who
}

// include takes note of what an Acquire has acquired for a lock of the caller's own kind.
func (a *acquisition) include(acquired []perLock) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.over {
		a.inner = append(a.inner, acquired...)
		a.asked = append(a.asked, acquired...)
	}
}

// end returns what was acquired. A lock that was asked for and is not held, such as one
// that the caller's own kind of lock uses for itself, is not among it.
func (a *acquisition) end() (acquired []perLock) {
	a.mu.Lock()
	a.over = true
	asked := a.asked
	a.mu.Unlock()
	for _, s := range asked {
		if s.lock.holdOf(s.who) != nil {
			acquired = append(acquired, s)
		}
	}
	return acquired
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
