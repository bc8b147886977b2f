package pages_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/wiretap"
)

// An element is one of an SVG, with the text in it.
type element struct {
	name string
	of   map[string]string
	text string
}

func (e element) number(t *testing.T, name string) int {
	t.Helper()
	n, err := strconv.Atoi(e.of[name])
	require.NoError(t, err, "%s of %v", name, e)
	return n
}

// elements reads an SVG.
func elements(t *testing.T, svg []byte) (all []element) {
	t.Helper()
	var open []int
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
			open = append(open, len(all))
			all = append(all, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, i := range open {
				all[i].text += string(token)
			}
		}
	}
}

// named are the elements of a name and, unless that is "", of a class.
func named(all []element, name, class string) (found []element) {
	for _, e := range all {
		if e.name == name && (class == "" || e.of["class"] == class) {
			found = append(found, e)
		}
	}
	return found
}

func texts(all []element) (found []string) {
	for _, e := range named(all, "text", "") {
		found = append(found, e.text)
	}
	return found
}

// handOver is made up: A holds a lock that B gets after it.
func handOver() *picture {
	at := time.Unix(0, 0)
	next := func(lane int, k kind, op wiretap.Op, text string) message {
		at = at.Add(time.Millisecond)
		return message{at: at, lane: lane, kind: k, op: op, text: text}
	}
	return &picture{
		title: "A and B", lanes: []string{"A", "B"}, znodes: []string{"/l/x-1"},
		messages: []message{
			next(0, sent, wiretap.Create, "create `x-`"),
			next(0, answered, wiretap.Create, "created `x-1`"),
			next(0, granted, "", "holds the lock"),
			next(1, sent, wiretap.GetData, "get `x-1`, watch it"),
			next(0, released, "", ""),
			next(0, sent, wiretap.Delete, "delete `x-1`"),
			next(1, answered, wiretap.Event, "watch event: `x-1` deleted"),
			next(1, granted, "", "holds the lock"),
		},
	}
}

// A bar of a hold is on its process's lifeline, from the grant to the release, or to the
// end.
func TestHoldsAreBarsOnLifelines(t *testing.T) {
	t.Parallel()
	p := handOver()
	all := elements(t, p.svg(palettes[0]))
	lifelines, bars := named(all, "line", "lifeline"), named(all, "rect", "hold")
	require.Len(t, lifelines, 3) // ZooKeeper's first
	require.Len(t, bars, 2)
	top, foot := lifelines[0].number(t, "y1"), lifelines[0].number(t, "y2")
	require.Greater(t, foot, top+5*rowHeight)
	for _, l := range lifelines {
		require.Equal(t, l.of["x1"], l.of["x2"])
		require.Equal(t, top, l.number(t, "y1"))
		require.Equal(t, foot, l.number(t, "y2"))
	}
	arrows := append(named(all, "line", request), named(all, "line", answer)...)
	y := func(i int) int { return arrows[i].number(t, "y1") }
	const created, wanted, deleted, answeredOnce = 0, 1, 2, 4 // 3 is in the legend
	for lane, bar := range bars {
		x := bar.number(t, "x") + bar.number(t, "width")/2
		require.Equal(t, lifelines[1+lane].number(t, "x1"), x)
	}
	ends := func(bar element) int { return bar.number(t, "y") + bar.number(t, "height") }
	began, ended := bars[0].number(t, "y"), ends(bars[0])
	require.Less(t, y(created), began)
	require.Less(t, y(answeredOnce), began)
	require.Less(t, began, y(wanted))
	require.Less(t, y(wanted), ended)
	require.Less(t, ended, y(deleted))
	require.Equal(t, foot, ends(bars[1]))
}

// An arrow tells what it is without its colour.
func TestArrowsDifferByMoreThanColour(t *testing.T) {
	t.Parallel()
	all := elements(t, handOver().svg(palettes[0]))
	const key = 1 // of the legend
	requests, answers := named(all, "line", request), named(all, "line", answer)
	events := named(all, "line", event)
	require.Len(t, requests, 3+key)
	require.Len(t, answers, 1+key)
	require.Len(t, events, 1+key)
	width := func(e element) float64 {
		w, err := strconv.ParseFloat(e.of["stroke-width"], 64)
		require.NoError(t, err)
		return w
	}
	require.Empty(t, requests[0].of["stroke-dasharray"])
	require.NotEmpty(t, answers[0].of["stroke-dasharray"])
	require.Less(t, width(answers[0]), width(requests[0]))
	require.Greater(t, width(events[0]), width(requests[0]))
	require.Len(t, named(all, "circle", ""), len(events), "an event begins with a dot")
}

// What an answer says is its result.
func TestAnswersSayTheirResult(t *testing.T) {
	t.Parallel()
	list := wiretap.Packet{Op: wiretap.GetChildren2, Path: dir}
	get := wiretap.Packet{Op: wiretap.GetData, Path: dir + "/x-1"}
	answers := func(request wiretap.Packet, change func(*wiretap.Packet)) string {
		reply := wiretap.Packet{Op: request.Op, Reply: true}
		change(&reply)
		return result(request, reply)
	}
	none := func(*wiretap.Packet) {}
	children := func(n int) func(*wiretap.Packet) {
		return func(p *wiretap.Packet) { p.Children = n }
	}
	fails := func(code int32) func(*wiretap.Packet) {
		return func(p *wiretap.Packet) { p.Err = code }
	}
	require.Equal(t, "queue: 1 entry", answers(list, children(1)))
	require.Equal(t, "queue: 3 entries", answers(list, children(3)))
	require.Equal(t, "`x-1` exists", answers(get, none))
	require.Equal(t, "`x-1`: no such znode", answers(get, fails(errNoNode)))
	require.Equal(t, "error -4", answers(get, fails(-4)))
	require.Equal(t, "deleted `x-1`",
		answers(wiretap.Packet{Op: wiretap.Delete, Path: dir + "/x-1"}, none))
	require.Equal(t, "created `x-2`",
		answers(wiretap.Packet{Op: wiretap.Create}, func(p *wiretap.Packet) {
			p.Path = dir + "/x-2"
		}))
}

// A timeline is to scale.
func TestTimelinesAreToScale(t *testing.T) {
	t.Parallel()
	line := &timeline{
		title: "lost", lanes: []string{"A", "B"}, length: 20 * time.Second,
		unit: 5 * time.Second, vertical: 10 * time.Second,
		spans: []stretch{
			{look: held, to: 5 * time.Second, text: "holds"},
			{look: left, from: 5 * time.Second, to: 10 * time.Second},
			{lane: 1, look: refused, from: 20 * time.Second, text: "no", before: true},
		},
	}
	all := elements(t, timelines(palettes[0], "a loss", []*timeline{line}))
	bar, rest := named(all, "rect", string(held))[0], named(all, "rect", string(left))[0]
	const quarter = (laneRight - laneLeft) / 4
	require.Equal(t, laneLeft, bar.number(t, "x"))
	require.Equal(t, quarter, bar.number(t, "width"))
	require.Equal(t, laneLeft+quarter, rest.number(t, "x"))
	require.Equal(t, quarter, rest.number(t, "width"))
	require.Contains(t, rest.of["fill"], "hatch")
	require.Equal(t, laneLeft+2*quarter, named(all, "line", "limit")[0].number(t, "x1"))
	require.Len(t, named(all, "path", string(refused)), 1)
	for _, text := range []string{"A", "B", "lost", "holds", "no", "0 s", "5 s", "20 s"} {
		require.Contains(t, texts(all), text)
	}
	require.Contains(t, named(all, "desc", "")[0].text, "20 s, B: no")
}

// What a run of each kind of loss shows, whatever it looks like.
func TestThePictureOfALossHasItsFacts(t *testing.T) {
	t.Parallel()
	svg, err := os.ReadFile(filepath.Join(root, "docs", "pictures", "loss.svg"))
	require.NoError(t, err)
	all := elements(t, svg)
	require.Len(t, named(all, "text", "panel"), 4)
	require.Len(t, named(all, "path", string(lost)), 3, "all but in the short outage")
	require.Len(t, named(all, "rect", string(suspended)), 1)
	require.Len(t, named(all, "path", string(refused)), 1)
	for _, text := range []string{
		"Lost closes at 9.5 s", "Lost closes at 7.5 s", "holds the lock throughout",
	} {
		require.Contains(t, texts(all), text)
	}
}

// Every picture is one to those who hear it, has words in a font that is easy to read,
// fits, and differs from its dark variant in nothing but colours.
func TestPicturesAreForEverybody(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "docs", "pictures", "*.svg"))
	require.NoError(t, err)
	color := regexp.MustCompile(`#[0-9a-fA-F]{6}`)
	of := map[string]string{}
	for _, file := range files {
		svg, err := os.ReadFile(file)
		require.NoError(t, err)
		of[strings.TrimSuffix(filepath.Base(file), ".svg")] = string(svg)
		all := elements(t, svg)
		require.Equal(t, "img", all[0].of["role"], file)
		require.Equal(t, "title desc", all[0].of["aria-labelledby"], file)
		require.Contains(t, all[0].of["font-family"], "sans-serif", file)
		require.NotEmpty(t, named(all, "title", "")[0].text, file)
		require.NotEmpty(t, named(all, "desc", "")[0].text, file)
		for _, e := range named(all, "text", "") {
			requireFits(t, file, e)
		}
	}
	for name, svg := range of {
		if !strings.HasSuffix(name, palettes[1].suffix) {
			dark := of[name+palettes[1].suffix]
			require.NotEqual(t, svg, dark, name)
			require.Equal(t, color.ReplaceAllString(svg, ""),
				color.ReplaceAllString(dark, ""), "%s and its dark variant", name)
		}
	}
}

// requireFits presumes that a letter is half as wide as the font is high, and somewhat
// more.
func requireFits(t *testing.T, file string, e element) {
	t.Helper()
	const letter = 8.2
	from, width := e.number(t, "x"), int(letter*float64(len([]rune(e.text))))
	switch e.of["text-anchor"] {
	case "middle":
		from -= width / 2
	case "end":
		from -= width
	}
	require.GreaterOrEqual(t, from, 0, "%s: %s", file, e.text)
	require.LessOrEqual(t, from+width, canvasWidth, "%s: %s", file, e.text)
}

var shown = regexp.MustCompile(`(?:src|srcset)="([^"]+\.svg)"`)

// Each picture is on a page, in the colours that the reader's page has.
func TestPagesShowEachPictureInBothColours(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range pages(t) {
		text := strings.Join(p.lines, "\n")
		require.NotRegexp(t, `!\[[^\]]*\]\([^)]*pictures/`, text,
			"%s: a picture without its dark variant", p.name)
		for _, found := range shown.FindAllStringSubmatch(text, -1) {
			file := filepath.Join(root, filepath.Dir(p.name), found[1])
			require.FileExists(t, file, p.name)
			if !strings.HasSuffix(file, palettes[1].suffix+".svg") {
				dark := strings.TrimSuffix(found[1], ".svg") + palettes[1].suffix + ".svg"
				require.Contains(t, text, fmt.Sprintf(
					`<source media="(prefers-color-scheme: dark)" srcset="%s">`, dark,
				), p.name)
			}
			seen[filepath.Base(file)] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(root, "docs", "pictures", "*.svg"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		require.True(t, seen[filepath.Base(file)], "no page shows %s", file)
	}
}
