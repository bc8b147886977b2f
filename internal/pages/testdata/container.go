package page

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/zkrecipes/recipes"
)

func Run(t *testing.T) {
	testcontainers.SkipIfProviderIsNotHealthy(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // it may be pulled
	defer cancel()
	container(ctx, t)
}

func container(ctx context.Context, t *testing.T) {
	//pages:block
	lock, err := recipes.NewInterProcessMutex(client, "/lock")
	require.NoError(t, err)
	require.NoError(t, lock.Acquire(ctx))
	require.NoError(t, lock.Release(ctx))
}
