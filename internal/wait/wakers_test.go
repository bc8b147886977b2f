package wait_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/wait"
)

func TestAPollIsDueInThirtyToSixtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := map[time.Duration]bool{}
		for range 100 {
			began := time.Now()
			<-wait.NextPoll()
			took[time.Since(began)] = true
			require.GreaterOrEqual(t, time.Since(began), 30*time.Second)
			require.Less(t, time.Since(began), time.Minute)
		}
		require.Greater(t, len(took), 90, "those who wait together ask together")
	})
}
