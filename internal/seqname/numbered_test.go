package seqname_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// Creates under way may take 65,536 numbers more.
func TestNumbered(t *testing.T) {
	t.Parallel()
	for seq, near := range map[int32]bool{
		0: false, -1: false, 1 << 30: false, math.MaxInt32 - 1<<16: false,
		math.MaxInt32 - 1<<16 + 1: true, math.MaxInt32: true,
		math.MinInt32: true, math.MinInt32 + 1<<16: false,
	} {
		name, err := seqname.Numbered(fmt.Sprintf("/a/x-lock-%010d", seq), "lock-")
		require.Equal(t, seq, name.Seq)
		if near {
			require.ErrorContains(t, err, "the sequence counter of /a is at")
		} else {
			require.NoError(t, err)
		}
	}
	_, err := seqname.Numbered("/a/x-lock-", "lock-")
	require.ErrorIs(t, err, zk.ErrAPIError)
}
