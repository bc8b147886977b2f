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
