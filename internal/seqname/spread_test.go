package seqname

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The order does not depend on that in which a server lists the znodes, and a queue whose
// order is not certain is refused whatever that is.
func TestSpread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seqs    []int32
		refused bool
	}{
		"empty":                       {nil, false},
		"one":                         {[]int32{-1 << 31}, false},
		"neighbours":                  {[]int32{7, 8}, false},
		"neighbours as it wraps":      {[]int32{1<<31 - 1, -1 << 31}, false},
		"just near enough":            {[]int32{5, 5 + 1<<30 - 1}, false},
		"near enough as it wraps":     {[]int32{1<<31 - 2, -1<<31 + 1<<30 - 3}, false},
		"too far apart":               {[]int32{5, 5 + 1<<30}, true},
		"too far apart as it wraps":   {[]int32{1<<31 - 2, -1<<31 + 1<<30 - 2}, true},
		"opposite":                    {[]int32{0, -1 << 31}, true},
		"a cycle":                     {[]int32{0, 700e6, 1400e6, -1494967296}, true},
		"a cycle behind real numbers": {[]int32{3, 4, 700e6, 1400e6, -1494967296}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var children []string
			for _, seq := range c.seqs {
				children = append(children, fmt.Sprintf("lock-%010d", seq))
			}
			for range children { // in each rotation
				err := CheckSpread(Participants(children, mutexKinds))
				require.Equal(t, c.refused, err != nil, "%v: %v", children, err)
				if c.refused {
					require.ErrorContains(t, err, children[0][:5])
				}
				children = append(children[1:], children[0])
			}
		})
	}
}

// Also a queue whose order is not certain is shown in one order, whatever the server
// lists first: an error names the same two of its znodes each time.
func TestTheOrderIsNotThatOfTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var children []string
		for i, seq := range rapid.SliceOf(rapid.Int32()).Draw(t, "numbers") {
			children = append(children, fmt.Sprintf("%d-lock-%010d", i, seq))
		}
		want := Participants(children, mutexKinds)
		listed := rapid.Permutation(children).Draw(t, "listed")
		require.Equal(t, want, Participants(listed, mutexKinds))
	})
}

func TestNumbersThatAreNotOfOneQueue(t *testing.T) {
	for _, c := range []struct {
		a, b int32
		far  bool
	}{
		{5, 5, false},
		{7, SpreadLimit + 6, false},
		{7, SpreadLimit + 7, true},
		{-7, SpreadLimit - 8, false},
		{-7, SpreadLimit - 7, true},
		{math.MaxInt32, math.MinInt32, false},
		{math.MaxInt32, math.MinInt32 + SpreadLimit - 2, false},
		{math.MaxInt32, math.MinInt32 + SpreadLimit - 1, true},
	} {
		a, b := Name{Seq: c.a}, Name{Seq: c.b}
		require.Equal(t, c.far, a.Far(b), "%d and %d", c.a, c.b)
		require.Equal(t, c.far, b.Far(a), "%d and %d", c.b, c.a)
	}
}
