package locktest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// Owner returns a ctx with an owner of its own that ends with the test.
func Owner(tb testing.TB) context.Context {
	tb.Helper()
	return recipes.WithOwner(tb.Context())
}

// A BrokenCtx is one whose Value panics, once it is broken.
type BrokenCtx struct {
	context.Context
	Broken *bool
}

// Value panics, or is that of the Context.
func (c BrokenCtx) Value(key any) any {
	if *c.Broken {
		panic("the ctx is broken")
	}
	return c.Context.Value(key)
}

// Try tells whether a new owner gets the mutex at path through p at once; it does not
// keep it.
func Try(tb testing.TB, p *Peer, path string) bool {
	tb.Helper()
	lock, ctx := p.Mutex(path), Owner(tb)
	ok, err := lock.AcquireTimeout(ctx, 0)
	require.NoError(tb, err)
	if ok {
		require.NoError(tb, lock.Release(ctx))
	}
	return ok
}

// IsOutOfTime tells whether err is what AcquireTimeout gives in a short time while others
// are ahead: nobody knows of them where it is over before the first answer.
func IsOutOfTime(err error) bool {
	return err == nil || errors.Is(err, recipes.ErrUnavailable)
}

// RequireOutOfTime requires [IsOutOfTime].
func RequireOutOfTime(tb testing.TB, err error) {
	tb.Helper()
	require.True(tb, IsOutOfTime(err), "%v", err)
}
