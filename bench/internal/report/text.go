package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/stats"
)

// nothing is what a table says where there is nothing to say.
const nothing = "–"

// speedText writes a speed as its scenario wants it.
func speedText(u plan.Unit, speed float64) string {
	if u == plan.Rate {
		return count(speed) + "/s"
	}
	return durationText(time.Duration(float64(time.Second) / speed))
}

// durationText writes three digits.
func durationText(d time.Duration) string {
	switch {
	case d >= time.Second:
		return digits(d.Seconds()) + " s"
	case d >= time.Millisecond:
		return digits(d.Seconds()*1e3) + " ms"
	case d >= time.Microsecond:
		return digits(d.Seconds()*1e6) + " µs"
	default:
		return strconv.FormatInt(d.Nanoseconds(), 10) + " ns"
	}
}

// bytesText writes a number of bytes.
func bytesText(n float64) string {
	if math.Abs(n) >= 1000 {
		return digits(n/1000) + " kB"
	}
	return digits(n) + " B"
}

// ratioText says "undecided" of a ratio that shows neither peer to be ahead.
func ratioText(s stats.Summary) string {
	text := rangeText(s, count)
	if s.Undecided() {
		text += " undecided"
	}
	return text
}

func shareText(s stats.Summary) string {
	return rangeText(s, func(share float64) string {
		return fmt.Sprintf("%.0f", 100*share)
	}) + " %"
}

// rangeText writes a median with its range, if that has any width.
func rangeText(s stats.Summary, text func(float64) string) string {
	if s.N == 1 {
		return text(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", text(s.Median), text(s.Lo), text(s.Hi))
}

// count writes three digits, or all of the whole ones with commas: "2,345".
func count(v float64) string {
	if v < 1000 {
		return digits(v)
	}
	all := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(all) - 3; i > 0; i -= 3 {
		all = all[:i] + "," + all[i:]
	}
	return all
}

// digits writes three digits, or all of the whole ones.
func digits(v float64) string {
	const least = 0.005
	switch size := math.Abs(v); {
	case size < least:
		return "0.00" // not "-0.00"
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

// plainNumber writes no digits that say nothing: "0.1", "1", "1,000".
func plainNumber(v float64) string {
	if v >= 1000 {
		return count(v)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// A table is one of Markdown.
type table struct {
	strings.Builder
	columns int
}

// newTable begins a table; the columns behind the first are numbers.
func newTable(titles ...string) *table {
	t := &table{columns: len(titles)}
	t.row(titles...)
	t.WriteString("| ---" + strings.Repeat(" | ---:", len(titles)-1) + " |\n")
	return t
}

// row writes one row; missing cells are empty.
func (t *table) row(cells ...string) {
	cells = append(cells, make([]string, t.columns-len(cells))...)
	t.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}
