package stats

// A Verdict says what the ratios of what something costs, new by old, show.
type Verdict string

// The verdicts.
const (
	More      Verdict = "MORE"
	Less      Verdict = "less"
	Same      Verdict = "the same"
	Undecided Verdict = "undecided"
)

// Judge gives one. What differs by less than the tolerance is of no interest: More and
// Less have the whole interval on their side of 1 and a median beyond the tolerance, Same
// has the whole interval within the tolerance. There is no verdict but Undecided without
// as many values as the confidence takes.
func Judge(ratios []float64, confidence, tolerance float64) (Summary, Verdict) {
	if len(ratios) == 0 {
		return Summary{}, Undecided
	}
	s := SummarizeAt(ratios, confidence)
	switch most := 1 + tolerance; {
	case s.N < FewestFor(confidence):
		return s, Undecided
	case s.Lo > 1 && s.Median > most:
		return s, More
	case s.Hi < 1 && s.Median < 1/most:
		return s, Less
	case s.Lo >= 1/most && s.Hi <= most:
		return s, Same
	default:
		return s, Undecided
	}
}
