package stats_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/stats"
)

func TestOfFewValuesTheRangeIsAllOfThem(t *testing.T) {
	s := stats.Summarize([]float64{3, 1, 2, 10})
	require.Equal(t, stats.Summary{Median: 2.5, Lo: 1, Hi: 10, N: 4}, s)
	s = stats.Summarize([]float64{7})
	require.Equal(t, stats.Summary{Median: 7, Lo: 7, Hi: 7, N: 1}, s)
}

func TestOfManyValuesTheRangeIsTheMediansInterval(t *testing.T) {
	var values []float64
	for i := range 99 {
		values = append(values, float64(i+1))
	}
	slices.Reverse(values)
	s := stats.Summarize(values)
	require.Equal(t, 50.0, s.Median)
	// The ranks 40 and 60 are what the binomial distribution gives for 95 %.
	require.InDelta(t, 40, s.Lo, 1)
	require.InDelta(t, 60, s.Hi, 1)
}

func TestAnOutlierMovesNoMedian(t *testing.T) {
	quiet := stats.Summarize([]float64{1, 1.1, 0.9, 1, 1.05, 0.95, 1})
	noisy := stats.Summarize([]float64{1, 1.1, 0.9, 1, 1.05, 0.95, 1e6})
	require.InDelta(t, quiet.Median, noisy.Median, 0.05)
}

func TestRatiosAreWithinARound(t *testing.T) {
	ratios := stats.Ratios(
		map[int]float64{0: 10, 1: 300, 2: 7},
		map[int]float64{0: 5, 1: 100, 3: 8},
	)
	slices.Sort(ratios)
	require.Equal(t, []float64{2, 3}, ratios, "rounds 2 and 3 lack one side")
	require.Empty(t, stats.Ratios(map[int]float64{0: 1}, map[int]float64{0: 0}))
}

func TestTheMoreConfidenceTheWiderTheRange(t *testing.T) {
	var values []float64
	for i := range 20 {
		values = append(values, float64(i+1))
	}
	// Of 20 values, 2 or fewer are below the median with a chance of 0.02 %, 5 or fewer
	// with one of 2.1 %.
	at := stats.SummarizeAt(values, 0.999)
	require.Equal(t, [2]float64{3, 18}, [2]float64{at.Lo, at.Hi})
	at = stats.SummarizeAt(values, 0.95)
	require.Equal(t, [2]float64{6, 15}, [2]float64{at.Lo, at.Hi})
	require.Equal(t, stats.FewestForInterval, stats.FewestFor(0.95))
	require.Equal(t, 11, stats.FewestFor(0.999))
}

func TestOneRoundDecidesNothing(t *testing.T) {
	require.True(t, stats.Summarize([]float64{3}).Undecided())
	require.False(t, stats.Summarize([]float64{3, 2}).Undecided())
	require.True(t, stats.Summarize([]float64{3, 0.9}).Undecided())
	require.False(t, stats.Summarize([]float64{0.8, 0.9}).Undecided())
}

func TestVerdicts(t *testing.T) {
	around := func(center, spread float64) (ratios []float64) {
		for i := range 20 {
			ratios = append(ratios, center+spread*(float64(i)-9.5)/9.5)
		}
		return ratios
	}
	for name, c := range map[string]struct {
		ratios []float64
		want   stats.Verdict
	}{
		"half as much again":      {around(1.5, 0.001), stats.More},
		"more, noisy":             {around(1.5, 0.4), stats.More},
		"more, too noisy":         {around(1.2, 0.5), stats.Undecided},
		"less":                    {around(0.8, 0.1), stats.Less},
		"equal":                   {around(1, 0.01), stats.Same},
		"equal, noisy":            {around(1, 0.4), stats.Undecided},
		"more, but next to none":  {around(1.01, 0.001), stats.Same},
		"less, but next to none":  {around(0.99, 0.001), stats.Same},
		"a little, at the border": {around(1.02, 0.015), stats.Undecided},
		"too few rounds":          {around(1.5, 0.1)[:9], stats.Undecided},
		"no round":                {nil, stats.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := stats.Judge(c.ratios, 0.999, 0.03)
			require.Equal(t, c.want, got)
		})
	}
}
