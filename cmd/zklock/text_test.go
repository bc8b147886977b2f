package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// What a terminal obeys, what turns a text round, and what nobody sees.
var hostile = map[string]string{
	"\x1b[2J":        `\x1b[2J`,    // clears the screen
	"a\rb":           `a\rb`,       // begins the line again
	"a\nb":           `a\nb`,       // makes a line of its own
	"\x7f":           `\x7f`,       // DEL
	"\u009b2J":       `\u009b2J`,   // C1: the same as ESC [
	"\u0085":         `\u0085`,     // C1: a new line
	"\u202e":         `\u202e`,     // from right to left
	"\u2066":         `\u2066`,     // isolates
	"\u200f":         `\u200f`,     // a mark
	"\u061c":         `\u061c`,     // an Arabic one
	"\u200b":         `\u200b`,     // no width
	"\u2060":         `\u2060`,     // a joiner
	"\ufeff":         `\ufeff`,     // a byte order mark
	"\u00ad":         `\u00ad`,     // a soft hyphen
	"\u034f":         `\u034f`,     // joins graphemes
	"\u115f":         `\u115f`,     // a letter without a shape
	"\u3164":         `\u3164`,     // another
	"\ufe0f":         `\ufe0f`,     // a variation of what is before
	"\u2028":         `\u2028`,     // ends a line
	"\u00a0":         `\u00a0`,     // a space that is none
	"\U000e0041":     `\U000e0041`, // a tag
	"\U000e0100":     `\U000e0100`,
	"\xff":           `\xff`, // no UTF-8
	"\ufffd":         `\ufffd`,
	"a \"b\" c\\d é": "a \"b\" c\\d é",
	"世界 😀":           "世界 😀",
}

func TestPrintable(t *testing.T) {
	for text, want := range hostile {
		require.Equal(t, want, printable(text), "%q", text)
	}
}

// JSON shows nothing else than a table does, and means what was there.
func TestJSONIsPrintable(t *testing.T) {
	for text := range hostile {
		var out strings.Builder
		path, node := "/a"+text, "/a"+text+"/"+text
		list := &list{json: true, stdout: &out}
		require.NoError(t, list.write([]row{
			{Path: path, Node: node, Nodes: []string{node, "/b"}, Data: text},
		}))
		for _, r := range out.String() {
			require.True(t, r == '\n' || isPlain(r), "%q has %U", text, r)
		}
		var back []row
		require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
		whole := func(text string, encoded []byte) string {
			if encoded == nil {
				return text
			}
			require.Equal(t, strings.ToValidUTF8(string(encoded), "\ufffd"), text)
			return string(encoded)
		}
		got := append(back[0].Nodes64, nil, nil)
		require.Equal(t, text, whole(back[0].Data, back[0].Data64))
		require.Equal(t, path, whole(back[0].Path, back[0].Path64))
		require.Equal(t, node, whole(back[0].Nodes[0], got[0]))
		require.Equal(t, "/b", whole(back[0].Nodes[1], got[1]))
	}
}

// No character that has no shape of its own is plain, whichever it is.
func TestPlain(t *testing.T) {
	for r := range rune(unicode.MaxRune) {
		if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Bidi_Control,
			unicode.Join_Control, unicode.Variation_Selector) {
			require.False(t, isPlain(r), fmt.Sprintf("%U", r))
		}
	}
}

func TestShorten(t *testing.T) {
	require.Equal(t, "äöü", shorten("äöü", 3))
	require.Equal(t, "äö…", shorten("äöüß", 3))
}
