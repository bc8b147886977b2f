package text

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
		require.Equal(t, want, Printable(text), "%q", text)
	}
}

type named struct{ Data string }

// JSON shows nothing else than a table does, and means what was there.
func TestJSONIsPrintable(t *testing.T) {
	for text := range hostile {
		var out strings.Builder
		require.NoError(t, WriteJSON(&out, []named{{Data: text}}))
		for _, r := range out.String() {
			require.True(t, r == '\n' || isPlain(r), "%q has %U", text, r)
		}
		var back []named
		require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
		require.Equal(t, strings.ToValidUTF8(text, "\ufffd"), back[0].Data)
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
	require.Equal(t, "äöü", Shorten("äöü", 3))
	require.Equal(t, "äö…", Shorten("äöüß", 3))
}

// Whatever the name and the data of a znode are, a terminal shows all of it, obeys none
// of it, and a program reads what was there.
func FuzzText(f *testing.F) {
	for text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := Printable(text)
		require.Equal(t, shown, Printable(shown))
		for _, r := range shown {
			require.True(t, isPlain(r), "%q has %U", shown, r)
		}
		var out strings.Builder
		require.NoError(t, WriteJSON(&out, []string{text}))
		for _, r := range out.String() {
			require.True(t, r == '\n' || isPlain(r), "%q has %U", out.String(), r)
		}
		var back []string
		require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
		require.Equal(t, []string{string([]rune(text))}, back)
	})
}
