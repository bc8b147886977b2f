package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func Run(t *testing.T) {
	ctx := recipes.WithOwner(t.Context())
	seen := int64(0) // one request comes after the other
	service := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, req *http.Request) {
			token, err := strconv.ParseInt(req.Header.Get("X-Fencing-Token"), 10, 64)
			switch {
			case err != nil:
				w.WriteHeader(http.StatusBadRequest)
			case token < seen:
				w.WriteHeader(http.StatusPreconditionFailed)
			default:
				seen = token
			}
		},
	))
	defer service.Close()
	earlier, later := twoHolds(ctx, t)
	write := func(hold *recipes.Hold) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, service.URL, nil)
		require.NoError(t, err)
		return send(req, hold)
	}
	require.NoError(t, write(earlier))
	require.NoError(t, write(earlier))
	require.NoError(t, write(later))
	require.Equal(t, later.FencingToken(), seen)
	require.ErrorContains(t, write(earlier), "rejected")
}

// twoHolds are of one lock, one after the other.
func twoHolds(ctx context.Context, t *testing.T) (earlier, later *recipes.Hold) {
	client, err := recipes.Connect(ctx, zktest.Start(t).ConnectString(), 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	lock, err := recipes.NewInterProcessMutex(client, "/lock")
	require.NoError(t, err)
	require.NoError(t, lock.Acquire(ctx))
	earlier = lock.Hold(ctx)
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, lock.Acquire(ctx))
	return earlier, lock.Hold(ctx)
}

func send(req *http.Request, hold *recipes.Hold) error {
	//pages:block
	return nil
}
