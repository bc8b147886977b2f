package simulator

import (
	"context"
	"testing"

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
