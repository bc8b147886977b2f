package locktest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// Open is [recipes.Connect] to servers that zkserver has started for tb, in a bubble or
// not.
func Open(
	ctx context.Context, tb testing.TB, servers string, timeout time.Duration,
	opts ...recipes.ClientOption,
) (*recipes.Client, error) {
	tb.Helper()
	dial := []recipes.ClientOption{recipes.WithDialer(zkserver.Dial(tb))}
	return recipes.Connect(ctx, servers, timeout, slices.Concat(dial, opts)...)
}
