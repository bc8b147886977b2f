package seqnode

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPositionTellsWhoseTheOneAheadIs(t *testing.T) {
	t.Parallel()
	const elsewhere = " (it can be the waiter's own, through another value of this path)"
	for want, p := range map[string]Position{
		"":                   {},
		"1 ahead, behind /a": {Ahead: 1, Behind: "/a"},
		"1 ahead, behind /a, of this process": {
			Ahead: 1, Behind: "/a", ours: true,
		},
		"2 ahead, behind /a, of this process" + elsewhere: BehindOurs(2, "/a"),
	} {
		require.Equal(t, want, p.String())
	}
}
