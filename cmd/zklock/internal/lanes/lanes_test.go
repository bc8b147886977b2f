package lanes_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/lanes"
)

func draw(t *testing.T, c lanes.Chart) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, c.WriteSVG(&b))
	return b.String()
}

// elements are the names of all elements, if it is XML at all.
func elements(t *testing.T, svg string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for in := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err, svg)
		if begin, ok := token.(xml.StartElement); ok {
			found[begin.Name.Local]++
		}
	}
}

func TestABarForEachThatIsInside(t *testing.T) {
	t.Parallel()
	svg := draw(t, lanes.Chart{
		Title: "one", From: time.Second, To: 11 * time.Second,
		Lanes: []lanes.Lane{{Name: "/locks/a", Bars: []lanes.Bar{
			{From: 0, To: 6 * time.Second, Label: "begins before"},
			{From: 0, To: time.Second / 2, Label: "is over before"},
			{From: 12 * time.Second, To: 13 * time.Second, Label: "comes after"},
			{From: 2 * time.Second, To: 2 * time.Second, Kind: lanes.Mark},
		}}},
	})
	require.Equal(t, 2, elements(t, svg)["rect"])
	require.Contains(t, svg, `x="180.0" y="42" width="500.0"`) // half of the chart
	require.Contains(t, svg, ">begins before</text>")
}

// Names come from files that somebody has sent.
func TestWhatIsWrittenIsEscaped(t *testing.T) {
	t.Parallel()
	evil := "</title><script>alert(1)</script>\x00\xff\" onload=\"x"
	svg := draw(t, lanes.Chart{
		Title: evil, To: time.Second,
		Lanes: []lanes.Lane{{Name: evil, Bars: []lanes.Bar{
			{To: time.Second, Label: evil},
		}}},
	})
	require.Zero(t, elements(t, svg)["script"])
	require.NotContains(t, svg, "<script")
	require.NotContains(t, svg, "\x00")
}

func TestLongLabelsAndManyBarsAreBounded(t *testing.T) {
	t.Parallel()
	bars := make([]lanes.Bar, 30_000)
	for i := range bars {
		bars[i] = lanes.Bar{To: time.Second, Label: strings.Repeat("x", 1000)}
	}
	svg := draw(t, lanes.Chart{To: time.Second, Lanes: []lanes.Lane{{Bars: bars}}})
	require.Equal(t, 20_000, elements(t, svg)["rect"])
	require.Less(t, len(svg), 20<<20)
}
