package hold_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A babbler tells of handshakes that are no evidence for its session.
type babbler struct {
	*recipes.Client
	another bool // it tells of another session's, at this moment; else of no time
}

func (b *babbler) LastHandshake() (session int64, began time.Time) {
	if b.another {
		return b.SessionID() + 1, time.Now()
	}
	return b.SessionID(), time.Time{}
}

// A hold relies on no other session's handshake, nor on one that was never.
func TestAHandshakeThatProvesNothing(t *testing.T) {
	for name, another := range map[string]bool{"another's": true, "none": false} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			lock := locktest.NewMutex(t, &babbler{b.Ours, another}, "/babbled")
			hold := locktest.Acquire(t.Context(), t, lock)
			b.Cluster.Link("ours").Cut()
			select {
			case <-hold.Lost():
			case <-time.After(10 * time.Second):
				t.Error("it outlasts its session")
			}
			require.ErrorIs(t, hold.Err(), recipes.ErrOutOfTouch)
		})
	}
}
