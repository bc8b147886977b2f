package queues

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of several circles through a session it is always the same that is told, so that a page
// which is drawn again says the same again.
func TestTheSameCircleIsTold(t *testing.T) {
	t.Parallel()
	row := func(path, state, session string) Row {
		return Row{
			Path: path, Kind: "lock", State: state, Session: session,
			Node: path + "/lock-" + session,
		}
	}
	for range 100 {
		c := NewCrowd()
		c.Add([]Row{row("/a", Holds, "1"), row("/a", Waits, "2")})
		c.Add([]Row{row("/b", Holds, "2"), row("/b", Waits, "1")})
		c.Add([]Row{row("/c", Holds, "2"), row("/c", Waits, "1")})
		c.Settle()
		all := c.Circles()
		require.Len(t, all, 1)
		require.Equal(t, "/b", all[0][0].Wanted.Path)
	}
}
