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
	shared  []share      // by Do: the locks that it has acquired
	all     owner        // by WithOwner: every other lock; zero: the goroutine's
	pending *acquisition // of a Do that is acquiring; nil: of none
}

type share struct {
	key any // see ownedLock
	who owner
}

// WithOwner returns a ctx that carries a new owner, different from every other. Whoever
// uses that ctx, or one derived from it, on whatever goroutine, is that owner: it may
// re-enter a lock that the owner holds, and release it. That is so for every lock, also
// in a ctx that Do has made for one.
func WithOwner(ctx context.Context) context.Context {
	all := owner{identity: new(identity)}
	return context.WithValue(ctx, ownerKey{}, &owners{all: all})
}

// ownerOf returns the owner that ctx carries for lock, or the calling goroutine.
func ownerOf(ctx context.Context, lock ownedLock) owner {
	if o, ok := ctx.Value(ownerKey{}).(*owners); ok {
		if who := o.of(lock); who != (owner{}) {
			return who
		}
	}
	return owner{goroutine: goroutineID()}
}

// of returns whom the ctx stands for, the zero owner where it is the calling goroutine.
func (o *owners) of(lock ownedLock) owner {
	key := lock.ownerKey()
	for _, s := range o.shared {
		if s.key == key {
			return s.who
		}
	}
	if o.all == (owner{}) && o.pending != nil {
		return o.pending.of(lock)
	}
	return o.all
}

// An acquisition finds out which locks a Do acquires. They may be behind a lock of the
// caller's own kind, of which nothing else is known.
type acquisition struct {
	who owner // the goroutine that called Do

	mu    sync.Mutex // guards what follows
	over  bool
	asked []ownedLock
}

// takeShared takes lock with ctx. What it has acquired is shared by the ctx that it
// returns, and by those derived from it: they stand for the caller, on any goroutine.
func takeShared(
	ctx context.Context, lock InterProcessLock, l limit,
) (context.Context, taken, error) {
	var former owners
	if o, ok := ctx.Value(ownerKey{}).(*owners); ok {
		former = *o
	}
	if former.all != (owner{}) { // which ctx stands for wherever it goes
		got, err := take(ctx, lock, l)
		return ctx, got, err
	}
	a := &acquisition{who: owner{goroutine: goroutineID()}}
	defer a.end()
	pending := &owners{shared: former.shared, pending: a}
	got, err := take(context.WithValue(ctx, ownerKey{}, pending), lock, l)
	if err != nil {
		return nil, got, err
	}
	former.shared = slices.Concat(former.shared, a.end())
	return context.WithValue(ctx, ownerKey{}, &former), got, nil
}

func (a *acquisition) of(lock ownedLock) owner {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return owner{}
	}
	if !slices.Contains(a.asked, lock) {
		a.asked = append(a.asked, lock)
	}
	return a.who
}

// end returns what was acquired. A lock that was asked for and is not held, such as one
// that the caller's own kind of lock uses for itself, is not among it.
func (a *acquisition) end() (acquired []share) {
	a.mu.Lock()
	a.over = true
	asked := a.asked
	a.mu.Unlock()
	for _, lock := range asked {
		if lock.holdOf(a.who) != nil {
			acquired = append(acquired, share{lock.ownerKey(), a.who})
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
