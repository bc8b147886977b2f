package recipes

import (
	"bytes"
	"context"
	"runtime"
	"strconv"
)

// An owner is who holds a lock, comparable: the identity that a ctx carries or else a goroutine.
type owner struct {
	identity  *identity
	goroutine uint64
}

type identity struct{ _ byte } // not empty: pointers to two of them differ

type ownerKey struct{}

// WithOwner returns a ctx that carries a new owner, different from every other. Whoever uses that ctx, or one derived from it,
// on whatever goroutine, is that owner: it may re-enter a lock that the owner holds, and release it.
func WithOwner(ctx context.Context) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner{identity: new(identity)})
}

// ownerOf returns the owner that ctx carries, or the calling goroutine.
func ownerOf(ctx context.Context) owner {
	if o, ok := ctx.Value(ownerKey{}).(owner); ok {
		return o
	}
	return owner{goroutine: goroutineID()}
}

// carryOwner returns a ctx that carries the owner of ctx also to other goroutines.
func carryOwner(ctx context.Context) context.Context {
	if _, ok := ctx.Value(ownerKey{}).(owner); ok {
		return ctx
	}
	return context.WithValue(ctx, ownerKey{}, ownerOf(ctx))
}

// goroutineID reads the number from the first line of the stack, "goroutine 18 [running]:", which is the only place where the
// runtime tells it. It takes some microseconds. Numbers are not used twice in a process.
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
