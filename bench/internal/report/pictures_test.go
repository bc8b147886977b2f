package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
)

// An element is one of an SVG, with the text in it.
type element struct {
	name string
	of   map[string]string
	text string
}

func elements(t *testing.T, svg []byte) (all []element) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, of: map[string]string{}}
			for _, a := range token.Attr {
				e.of[a.Name.Local] = a.Value
			}
			all = append(all, e)
		case xml.CharData:
			if len(all) > 0 {
				all[len(all)-1].text += strings.TrimSpace(string(token))
			}
		}
	}
}

func named(all []element, name string) (found []element) {
	for _, e := range all {
		if e.name == name {
			found = append(found, e)
		}
	}
	return found
}

// drawn are the pictures of one server on loopback, by the names of their files.
func drawn(t *testing.T, d *report.Data) map[string][]byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "results")
	require.NoError(t, os.Mkdir(dir, 0o755))
	pictures, err := report.Pictures(d, dir)
	require.NoError(t, err)
	found := map[string][]byte{}
	for _, p := range pictures[plan.Setting{Servers: 1}] {
		for _, suffix := range []string{".svg", "-dark.svg"} {
			svg, err := os.ReadFile(filepath.Join(filepath.Dir(dir), p.Name+suffix))
			require.NoError(t, err)
			found[filepath.Base(p.Name)+suffix] = svg
		}
	}
	return found
}

func texts(all []element) (found []string) {
	for _, e := range named(all, "text") {
		found = append(found, e.text)
	}
	return found
}

// Every picture is one to those who hear it, and has words in a font that is easy to
// read, none of them beyond its borders.
func TestThePictures(t *testing.T) {
	all := drawn(t, canned())
	require.Len(t, all, 2*3)
	for name, svg := range all {
		found := elements(t, svg)
		root := named(found, "svg")[0]
		require.Equal(t, "img", root.of["role"], name)
		require.Equal(t, "title desc", root.of["aria-labelledby"], name)
		require.NotEmpty(t, named(found, "title")[0].text, name)
		require.Contains(t, named(found, "desc")[0].text, "recipes", name)
		require.Contains(t, texts(found), "recipes", name)
		width, err := strconv.ParseFloat(strings.TrimSuffix(root.of["width"], "pt"), 64)
		require.NoError(t, err)
		for _, text := range named(found, "text") {
			require.Contains(t, text.of["style"], "sans-serif", name)
			x, err := strconv.ParseFloat(text.of["x"], 64)
			require.NoError(t, err)
			const letter = 5.2 // points, of a font of 11 or 12
			if text.text != named(found, "title")[0].text {
				require.LessOrEqual(t, x+letter*float64(len([]rune(text.text))), width,
					"%s: %s", name, text.text)
			}
		}
	}
	speed := texts(elements(t, all["speed-1-0s.svg"]))
	for _, word := range []string{
		"uncontended", "two processes,", "zk.Lock = 1", "create + delete (no lock)",
		"faded: range includes 1", "× zk.Lock",
	} {
		require.Contains(t, speed, word)
	}
	require.NotContains(t, speed, "S1")
}

// Hand-overs of 5,000 to 15,000 a second.
func TestTheTimesAreMilliseconds(t *testing.T) {
	all := elements(t, drawn(t, canned())["queue-1-0s.svg"])
	require.Contains(t, named(all, "desc")[0].text, "100 users: recipes 0.10 (0.07–0.20)")
	require.Subset(t, texts(all), []string{"ms", "0.1", "100", "5,000"})
}

// One length of a queue is a row for each peer, not an axis with one mark.
func TestAQueueOfOneLengthIsDrawnInRows(t *testing.T) {
	d := canned()
	d.Measurements = slices.DeleteFunc(d.Measurements, func(m *plan.Measurement) bool {
		return m.Scenario == "S5-5000"
	})
	words := texts(elements(t, drawn(t, d)["queue-1-0s.svg"]))
	require.Contains(t, words, "100 users")
	require.NotContains(t, words, "users in the queue")
}

// Where the range includes 1, neither peer is shown to be faster.
func TestWhatIsUndecidedIsFaded(t *testing.T) {
	const own, inLegend = `#0072B2`, 1
	for name, of := range map[string]struct {
		fastest     int
		full, faded int
	}{
		"decided":   {600, inLegend + 2, inLegend}, // the dot, and its range
		"undecided": {900, inLegend, inLegend + 2},
	} {
		d := &report.Data{}
		for round, speed := range []int{of.fastest, 500} {
			for peer, ops := range map[string]int{peer.Recipes: 700, peer.ZKLock: speed} {
				d.Measurements = append(d.Measurements, &plan.Measurement{
					Setting: plan.Setting{Servers: 1}, Scenario: "S1", Peer: peer,
					Round:   round,
					Results: []load.Result{{Ops: int64(ops), Took: time.Second}},
				})
			}
		}
		svg := string(drawn(t, d)["speed-1-0s.svg"])
		const faded = `#8CBFDC` // 45 % of it, on white
		require.Equal(t, of.full, strings.Count(svg, own), name)
		require.Equal(t, of.faded, strings.Count(svg, faded), name)
	}
}

// What is committed was drawn and written from the results that are committed.
func TestTheReportIsOfItsResults(t *testing.T) {
	const bench = "../.."
	d, err := report.Read(filepath.Join(bench, "results", "data.json"))
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "results")
	require.NoError(t, os.Mkdir(dir, 0o755))
	pictures, err := report.Pictures(d, dir)
	require.NoError(t, err)
	var page bytes.Buffer
	require.NoError(t, report.Markdown(&page, d, pictures))
	want, err := os.ReadFile(filepath.Join(bench, "RESULTS.md"))
	require.NoError(t, err)
	const again = "run: go run . report results/data.json"
	require.True(t, page.String() == string(want), again)
	committed, err := filepath.Glob(filepath.Join(bench, "results", "*.svg"))
	require.NoError(t, err)
	drawn, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, drawn)
	require.Len(t, committed, len(drawn), again)
	for _, file := range drawn {
		svg, err := os.ReadFile(file)
		require.NoError(t, err)
		want, err := os.ReadFile(filepath.Join(bench, "results", filepath.Base(file)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, svg), "%s: %s", filepath.Base(file), again)
	}
}
