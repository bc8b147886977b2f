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

	"github.com/stretchr/testify/require"
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
