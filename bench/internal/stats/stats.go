// Package stats says what several rounds say together.
package stats

import (
	"math"

	"golang.org/x/perf/benchmath"
)

// A Summary is the median of several values and the range that it is said with: its
// confidence interval or, of too few values for that, from the least to the greatest.
type Summary struct {
	Median, Lo, Hi float64
	N              int
}

const confidence = 0.95

// FewestForInterval is the least number of values that a confidence interval of 95 %
// takes.
const FewestForInterval = 6

// Summarize gives the interval at 95 %. There is at least one value.
func Summarize(values []float64) Summary { return SummarizeAt(values, confidence) }

// SummarizeAt gives the interval that has the median with this confidence. It is the one
// of the sign test, and makes no assumption about how the values are distributed.
func SummarizeAt(values []float64, confidence float64) Summary {
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	said := benchmath.AssumeNothing.Summary(sample, confidence)
	s := Summary{Median: said.Center, Lo: said.Lo, Hi: said.Hi, N: len(values)}
	if len(values) < FewestFor(confidence) ||
		math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		s.Lo, s.Hi = sample.Values[0], sample.Values[len(values)-1]
	}
	return s
}

// FewestFor is the least number of values that an interval of this confidence takes: all
// of n values are on one side of the median with a chance of 2 in 2^n.
func FewestFor(confidence float64) int {
	return 1 + int(math.Ceil(-math.Log2(1-confidence)))
}

// Undecided reports of ratios that neither side is shown to be ahead: the range includes
// 1, or there is only one value.
func (s Summary) Undecided() bool { return s.N < 2 || s.Lo <= 1 && 1 <= s.Hi }

// Ratios divides, round by round, a by b. A round that either lacks is left out.
func Ratios(a, b map[int]float64) (ratios []float64) {
	for round, over := range a {
		if under, both := b[round]; both && under != 0 {
			ratios = append(ratios, over/under)
		}
	}
	return ratios
}
