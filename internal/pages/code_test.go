package pages_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A block is one of Go in a page.
type block struct {
	page    string
	line    int    // its first one in the page
	harness string // of testdata, without its ending
	text    string
}

func (b block) where() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// isProgram tells whether the block stands by itself.
func (b block) isProgram() bool { return strings.HasPrefix(b.text, "package ") }

// isFile tells whether the block is a file, or a part of one, whose own tests run it: its
// harness is the name of that file, as a link of the page would have it.
func (b block) isFile() bool { return strings.HasSuffix(b.harness, ".go") }

func TestFilesInPagesAreAsTheyStand(t *testing.T) {
	t.Parallel()
	files := 0
	for _, b := range blocks(t) {
		if b.isFile() {
			files++
			file, err := os.ReadFile(filepath.Join(root, filepath.Dir(b.page), b.harness))
			require.NoError(t, err, b.where())
			if strings.Contains("\n"+b.text, "\npackage ") {
				require.Equal(t, string(file), b.text, b.where())
			} else { // a part of it
				require.Contains(t, string(file), b.text, b.where())
			}
		}
	}
	require.NotZero(t, files)
}

var harnessComment = regexp.MustCompile(`^<!-- go: (\S+) -->$`)

// otherLanguages are those whose blocks are not looked at.
var otherLanguages = []string{
	"console", "crontab", "ini", "java", "js", "python", "sh", "yaml",
}

// blocks are those of all pages.
func blocks(t *testing.T) (found []block) {
	t.Helper()
	for _, p := range pages(t) {
		found = append(found, p.blocks(t)...)
	}
	require.NotEmpty(t, found)
	return found
}

func (p page) blocks(t *testing.T) (found []block) {
	t.Helper()
	harness, language := "", "" // language is "" outside of a block
	for i, line := range p.lines {
		where := fmt.Sprintf("%s:%d", p.name, i+1)
		fence := strings.HasPrefix(strings.TrimLeft(line, " \t>"), "```")
		switch m := harnessComment.FindStringSubmatch(line); {
		case m != nil:
			harness = m[1]
		case fence && language == "":
			language = strings.TrimPrefix(line, "```")
			if language == "go" {
				require.NotEmpty(t, harness, "%s: the block names no harness", where)
				found = append(found, block{p.name, i + 2, harness, ""})
				harness = ""
				continue
			}
			require.Contains(t, otherLanguages, language, where)
		case fence:
			language = ""
		case language == "go":
			found[len(found)-1].text += line + "\n"
		}
	}
	require.Empty(t, language, "%s: a block of code does not end", p.name)
	require.Empty(t, harness, "%s: a harness without a block", p.name)
	return found
}

// A source is a block as the compiler is to see it, in a package of its own.
type source struct {
	block
	pkg         string
	code        string
	first, last int // the block's lines of it
}

var placeOfBlock = regexp.MustCompile(`(?m)^\t*//pages:block\n`)

// image is that of a page. What ZOOKEEPER_IMAGE names stands in for it, as elsewhere.
const image = "zookeeper:3.9.6"

// newSource puts a block into its harness.
func newSource(t *testing.T, pkg string, b block) *source {
	t.Helper()
	if own := os.Getenv("ZOOKEEPER_IMAGE"); own != "" {
		b.text = strings.ReplaceAll(b.text, strconv.Quote(image), strconv.Quote(own))
	}
	if b.isProgram() {
		return &source{b, pkg, b.text, 1, strings.Count(b.text, "\n")}
	}
	text, err := os.ReadFile(filepath.Join("testdata", b.harness+".go"))
	require.NoError(t, err, b.where())
	at := placeOfBlock.FindAllIndex(text, -1)
	require.Len(t, at, 1, "%s: the places for a block", b.harness)
	before, after := string(text[:at[0][0]]), string(text[at[0][1]:])
	first := strings.Count(before, "\n") + 1
	return &source{
		b, pkg, before + b.text + after, first, first + strings.Count(b.text, "\n") - 1,
	}
}

// origin is where a line of the source comes from.
func (s *source) origin(line int) string {
	switch {
	case line < s.first:
		return fmt.Sprintf("testdata/%s.go:%d", s.harness, line)
	case line > s.last: // of the harness, where the block is one line
		return fmt.Sprintf("testdata/%s.go:%d", s.harness, line-(s.last-s.first))
	}
	return fmt.Sprintf("%s:%d", s.page, s.line+line-s.first)
}
