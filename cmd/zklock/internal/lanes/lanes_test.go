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

var began = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func at(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }

func drawn(t *testing.T, c lanes.Chart) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, c.Write(&out))
	return out.String()
}

func TestAHandOverIsAStep(t *testing.T) {
	all := []lanes.Lane{
		{Label: "a", Spans: []lanes.Span{{Kind: lanes.Holds, From: at(0), To: at(60)}}},
		{Label: "b", Spans: []lanes.Span{
			{Kind: lanes.Waits, From: at(30), To: at(60)},
			{Kind: lanes.Holds, From: at(60), To: at(600), Open: true},
		}},
	}
	svg := drawn(t, lanes.Chart{From: at(0), To: at(600), Steps: true, Lanes: all})
	require.Contains(t, svg, `<rect class="holds" x="0.00%" y="18" width="10.00%"`)
	require.Contains(t, svg, `<rect class="waits" x="5.00%" y="52" width="5.00%"`)
	require.Contains(t, svg, `<rect class="holds open" x="10.00%" y="52" width="90.00%"`)
	require.Contains(t, svg,
		`<line class="step" x1="10.00%" x2="10.00%" y1="30" y2="52"/>`)
	require.Equal(t, 1, strings.Count(svg, `class="step"`))
}

// What ended before the picture begins is not drawn, and what began before is cut.
func TestWhatIsOutsideIsCut(t *testing.T) {
	svg := drawn(t, lanes.Chart{From: at(100), To: at(200), Lanes: []lanes.Lane{{
		Spans: []lanes.Span{
			{Kind: lanes.Waits, From: at(0), To: at(50)},
			{Kind: lanes.Holds, From: at(50), To: at(150)},
			{Kind: lanes.Holds, From: at(190), To: at(900)},
		},
	}}})
	require.NotContains(t, svg, `class="waits"`)
	require.Contains(t, svg, `class="holds" x="0.00%" y="18" width="50.00%"`)
	require.Contains(t, svg, `class="holds" x="90.00%" y="18" width="10.00%"`)
}

// Any text makes a picture that is XML, in which nothing but what it draws is an element.
func FuzzTexts(f *testing.F) {
	f.Add("<script>alert(1)</script>")
	f.Add("\x00\u202e]]>&#x0;\xff")
	f.Fuzz(func(t *testing.T, hostile string) {
		svg := drawn(t, lanes.Chart{
			Title: hostile, From: at(0), To: at(9), Steps: true, Lanes: []lanes.Lane{{
				Label: hostile,
				Spans: []lanes.Span{
					{Kind: lanes.Waits, From: at(1), To: at(2), Title: hostile},
				},
			}},
		})
		decoder := xml.NewDecoder(strings.NewReader(svg))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(t, err)
			if start, ok := token.(xml.StartElement); ok {
				require.Contains(t, []string{"svg", "title", "text", "rect", "line"},
					start.Name.Local)
			}
		}
	})
}

// The axis has few lines, however long the time is.
func TestTheAxis(t *testing.T) {
	for _, whole := range []int{0, 1, 7, 60, 600, 3600, 86400, 700000} {
		svg := drawn(t, lanes.Chart{From: at(0), To: at(whole)})
		require.LessOrEqual(t, strings.Count(svg, `<line class="tick"`), 8, "%d s", whole)
	}
}
