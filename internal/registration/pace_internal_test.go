package registration

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// At once, after a second, and then every two; from the beginning after ten seconds of
// peace.
func TestThePaceOfTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		for range 2 {
			for i, want := range []time.Duration{0, 1, 2, 2, 2} {
				delay := p.next()
				require.Equal(t, want*time.Second, delay, "try %d", i)
				time.Sleep(delay)
			}
			time.Sleep(peace)
		}
		require.Zero(t, p.next())
		time.Sleep(peace - time.Millisecond)
		require.Zero(t, p.next(), "the time since the last one counts")
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 1500*time.Millisecond, p.next())
	})
}
