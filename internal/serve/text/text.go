// Package text shows what may be anybody's, such as names and data of znodes.
package text

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// isPlain reports whether a terminal shows a character as itself. It does not for control
// characters, which it obeys, for those that change the direction of a text, and for
// those that nobody sees.
func isPlain(r rune) bool {
	return r != utf8.RuneError && strconv.IsPrint(r) && !unicode.In(r,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Printable escapes all characters of a text that are not plain, as Go writes them: names
// and data of znodes may be anybody's.
func Printable(text string) string {
	return escaped(text, isPlain, func(char string) string {
		quoted := strconv.QuoteToASCII(char)
		return quoted[1 : len(quoted)-1]
	})
}

// escaped replaces the characters that are not to stay, one by one. A byte that is no
// UTF-8 is a character.
func escaped(text string, stays func(rune) bool, escape func(string) string) string {
	var out strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if char := text[:size]; stays(r) {
			out.WriteString(char)
		} else {
			out.WriteString(escape(char))
		}
		text = text[size:]
	}
	return out.String()
}

// Shorten cuts a text to a number of characters.
func Shorten(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// WriteJSON writes a value, in which characters that are not plain are escaped. The value
// that a program reads is as it was.
func WriteJSON(to io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	stays := func(r rune) bool { return r == '\n' || isPlain(r) }
	_, err = io.WriteString(to, escaped(string(text), stays, func(char string) string {
		out := ""
		for _, unit := range utf16.Encode([]rune(char)) {
			out += `\u` + strconv.FormatUint(1<<16|uint64(unit), 16)[1:]
		}
		return out
	})+"\n")
	return err
}
