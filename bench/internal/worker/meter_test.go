package worker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/peer"
)

// Somebody else had the processor between the first two readings of the operations, and
// between the next two.
func TestTheMeterIsReadWhenNothingHappensMeanwhile(t *testing.T) {
	counts := []int64{10, 500, 510, 513, 520, 520, 521}
	m := &team{wire: peer.NewWire(nil)}
	ops, _ := m.readTogether(func() (n int64) {
		n, counts = counts[0], counts[1:]
		return n
	})
	require.EqualValues(t, 520, ops)
	require.Equal(t, []int64{521}, counts)

	n := int64(0)
	ops, _ = m.readTogether(func() int64 {
		n += 7 // it never stands still
		return n
	})
	require.EqualValues(t, 7, ops, "the first is as good as the others")
}
