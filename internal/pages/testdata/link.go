package page

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func Run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link(t.Context(), t)
		time.Sleep(time.Minute) // what is under way ends by itself
	})
}

func link(ctx context.Context, t *testing.T) {
	//pages:block
	lock, err := recipes.NewInterProcessMutex(client, "/lock")
	require.NoError(t, err)
	_, err = lock.AcquireTimeout(ctx, time.Second)
	require.ErrorIs(t, err, recipes.ErrUnavailable)
	link.Heal()
	require.NoError(t, lock.Acquire(ctx))
	require.NoError(t, lock.Release(ctx))
}
