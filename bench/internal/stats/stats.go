// Package stats says what several rounds say together.
package stats

import (
	"math"

	"golang.org/x/perf/benchmath"
)

// A Summary is the median of several values and the range that it is said with: the
// confidence interval of the median at 95 %, or, of too few values for that, from the
// least to the greatest.
type Summary struct {
	Median, Lo, Hi float64
	N              int
}

const confidence = 0.95

// FewestForInterval is the least number of values that a confidence interval takes.
const FewestForInterval = 6

// Summarize makes no assumption about how the values are distributed. There is at least
// one.
func Summarize(values []float64) Summary {
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	said := benchmath.AssumeNothing.Summary(sample, confidence)
	s := Summary{Median: said.Center, Lo: said.Lo, Hi: said.Hi, N: len(values)}
	if len(values) < FewestForInterval || math.IsInf(s.Lo, 0) || math.IsInf(s.Hi, 0) {
		s.Lo, s.Hi = sample.Values[0], sample.Values[len(values)-1]
	}
	return s
}

// Ratios divides, round by round, a by b. A round that either lacks is left out.
func Ratios(a, b map[int]float64) (ratios []float64) {
	for round, over := range a {
		if under, both := b[round]; both && under != 0 {
			ratios = append(ratios, over/under)
		}
	}
	return ratios
}
