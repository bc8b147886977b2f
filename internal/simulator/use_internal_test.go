package simulator

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// A sessionClient has a session, and nothing else.
type sessionClient struct {
	Client
	id int64
}

func (c *sessionClient) SessionID() int64 { return c.id }

// A session that ends while a multi lock waits for its second member takes the first with
// it. To the checkers that one is not a hold of the next session.
func TestEachPartIsOfTheSessionInWhichItWasAcquired(t *testing.T) {
	client := &sessionClient{id: 7}
	on := &session{client: client}
	parts := []part{
		{path: "/a", mode: Exclusive, on: on},
		{path: "/b", mode: Exclusive, on: on},
		{path: "/c", mode: Leased, on: on},
		{path: "/c", mode: Leased, on: on},
	}
	ctx := context.WithValue(t.Context(), partsKey{}, parts)
	for _, path := range []string{"/a", "/b", "/c", "/c"} {
		(&World{}).observe(ctx, recipes.Event{
			Kind: recipes.EventAcquired, Path: path, Node: path + "/x",
		})
		client.id++
	}
	for i, p := range parts {
		require.Equal(t, int64(7+i), p.inSession, p.path)
	}
}

// A losable is lost when it is closed.
type losable chan struct{}

func (l losable) Lost() <-chan struct{} { return l }
func (losable) Err() error              { return nil }

// Where the goroutine that ends ctx comes late by the machine's fault, somebody who looks
// again is told.
func TestALossThatABusyMachineTellsLate(t *testing.T) {
	for name, c := range map[string]struct {
		looks   int
		ends    time.Duration
		untold  bool
		decides time.Duration
	}{
		"at once":            {0, 0, false, 0},
		"late":               {0, 50 * time.Millisecond, true, time.Millisecond},
		"late, looked again": {100, 50 * time.Millisecond, false, 50 * time.Millisecond},
		"never":              {100, time.Hour, true, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &World{Config: Config{Looks: c.looks}}
				ctx, cancel := context.WithTimeout(t.Context(), c.ends)
				defer cancel()
				lost := make(losable)
				parts := []part{{grant: grant{of: lost}}}
				require.False(t, w.untold(ctx, parts), "nothing was lost")
				close(lost)
				began := time.Now()
				require.Equal(t, c.untold, w.untold(ctx, parts))
				took := time.Since(began)
				require.InDelta(t, c.decides, took, float64(time.Millisecond))
			})
		})
	}
}
