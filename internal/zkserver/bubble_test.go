package zkserver_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// In a bubble a session lasts its hour at once, on servers that restart, freeze and
// answer as those in real time do.
func TestBubble(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		c := zkserver.Start(t, zkserver.Servers(3))
		other := zkserver.Shared(t)
		require.Same(t, other, zkserver.Shared(t))
		require.NotContains(t, c.Connect(), other.Connect())
		if !zkserver.Virtual(t) {
			return // as a test of any server
		}
		began := time.Now()
		time.Sleep(time.Hour)
		require.Equal(t, time.Hour, time.Since(began))

		require.NoError(t, c.Servers[0].Kill())
		_, err := c.Servers[0].FourLetter("srvr")
		require.Error(t, err)
		require.NoError(t, c.Servers[0].Restart())
		answer, err := c.Servers[0].FourLetter("srvr")
		require.NoError(t, err)
		require.Contains(t, answer, "Mode: ")

		require.NoError(t, other.Servers[0].Freeze())
		_, err = other.Servers[0].FourLetter("srvr")
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)

		for _, address := range []string{"127.0.0.1:5", "127.0.0.2:1", "nowhere"} {
			_, err = zkserver.Dial(t)("tcp", address, time.Second)
			require.ErrorContains(t, err, "no server of this test has that address")
		}
	})
}
