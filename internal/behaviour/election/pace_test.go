package election_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A lead that returns at once made thousands of terms a second, each with three
// transactions, and has brought the counter of its path to an end within days.
func TestALeadThatReturnsAtOnceIsSlowedDown(t *testing.T) {
	for name, opts := range map[string][]recipes.Option{
		"it returns": nil, "its terms expire": {recipes.WithMaxHold(time.Microsecond)},
	} {
		locktest.Run(t, name, func(t *testing.T, b *locktest.Bubble) {
			b.Cluster.Link("ours").Delay(time.Millisecond/10, time.Millisecond/10)
			var terms []time.Time
			s, err := recipes.NewLeaderSelector(b.Ours, "/election", opts...)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeoutCause(
				t.Context(), 20*time.Second, errors.New("the test is over"))
			defer cancel()
			began := time.Now()
			err = s.Run(ctx, func(context.Context, *recipes.Hold) error {
				terms = append(terms, time.Now())
				return nil
			})
			require.ErrorContains(t, err, "the test is over")
			require.LessOrEqual(t, time.Since(began), 20*time.Second+locktest.Grace)
			require.Less(t, len(terms), 20*20, "terms in 20 seconds")
			require.Greater(t, len(terms), 20*8, "terms in 20 seconds")
			require.Less(t, terms[9].Sub(terms[0]), 20*time.Millisecond, "ten terms")
			for i := range terms[1:] {
				require.Less(t, terms[i+1].Sub(terms[i]), 150*time.Millisecond)
			}
		})
	}
}

// Nine terms a second are none too many, whether for long or after a rush.
func TestALeadThatReturnsSoonIsNotSlowedDown(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		const works = time.Second / 9
		s, err := recipes.NewLeaderSelector(b.Ours, "/election")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		rush, last := 30, time.Time{}
		_ = s.Run(ctx, func(context.Context, *recipes.Hold) error {
			if rush--; rush > 0 {
				return nil
			}
			if rush < -20 && ctx.Err() == nil {
				require.LessOrEqual(t, time.Since(last), 10*time.Millisecond)
			}
			time.Sleep(works)
			last = time.Now()
			return nil
		})
		require.Less(t, rush, -100)
	})
}
