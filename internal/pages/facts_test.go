package pages_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(text)
}

// A figure is a ratio with the least and the greatest of its rounds.
var figure = regexp.MustCompile(`([\d.,]+) \(([\d.,]+)–([\d.,]+)\) \| ([^|]*) \|`)

// The README's figures are those of bench/RESULTS.md, and it calls undecided what is.
func TestFiguresWereMeasured(t *testing.T) {
	t.Parallel()
	measured := read(t, "bench/RESULTS.md")
	found := figure.FindAllStringSubmatch(read(t, "README.md"), -1)
	require.NotEmpty(t, found)
	for _, f := range found {
		whole, verdict := strings.Split(f[0], " |")[0], f[4]
		cell := whole
		if verdict == "undecided" {
			cell += " " + verdict
		}
		if !strings.Contains(measured, "| "+cell+" |") {
			t.Errorf("bench/RESULTS.md has no %s", cell)
		}
		least, err := strconv.ParseFloat(f[2], 64)
		require.NoError(t, err)
		greatest, err := strconv.ParseFloat(f[3], 64)
		require.NoError(t, err)
		require.Equal(t, least <= 1 && 1 <= greatest, verdict == "undecided", whole)
	}
}

var (
	nextLiteral = regexp.MustCompile(`"\s*\+\s*"`)
	firstCell   = regexp.MustCompile("(?m)^\\| (?:.*, )?[\"`](.+?)[\"`][^|]* \\|")
)

// sources are those of the library, the pieces of its texts joined.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{root, filepath.Join(root, "internal")} {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && dir == root && path != root:
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		require.NoError(t, err)
	}
	return nextLiteral.ReplaceAllString(all.String(), "")
}

// Who looks for a message or an error finds it in these pages as it was logged.
func TestMessagesAreThoseOfTheSources(t *testing.T) {
	t.Parallel()
	code := sources(t)
	for section, page := range map[string]string{
		"An incident":  "docs/operations.md",
		"Errors":       "docs/messages.md",
		"Log messages": "docs/messages.md",
	} {
		_, text, ok := strings.Cut(read(t, page), "## "+section+"\n")
		require.True(t, ok, section)
		text, _, _ = strings.Cut(text, "\n## ")
		found := firstCell.FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, found, section)
		for _, f := range found {
			if section == "Log messages" {
				f[1] = "zookeeper…: " + f[1] // the client's, or a lock's
			}
			for part := range strings.SplitSeq(f[1], "…") {
				if part = strings.Trim(part, " "); !strings.Contains(code, part) {
					t.Errorf("%s: no source has %q", section, part)
				}
			}
		}
	}
}

var pageInSource = regexp.MustCompile(`\bdocs/(?:appendix/)?[a-z-]+\.md(?:#([a-z-]+))?`)

// The comments of the library send readers to pages, and headings, that exist.
func TestSourcesNamePagesThatExist(t *testing.T) {
	t.Parallel()
	found := pageInSource.FindAllStringSubmatch(sources(t), -1)
	require.NotEmpty(t, found)
	for _, f := range found {
		name, _, _ := strings.Cut(f[0], "#")
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil || f[1] != "" && !anchors(string(text))[f[1]] {
			t.Errorf("a source names %s, which does not exist", f[0])
		}
	}
}

var (
	advised = regexp.MustCompile(`\*\*3\.9\.(\d+) or later`)
	started = regexp.MustCompile(`"zookeeper:3\.9\.(\d+)"`)
)

// The server that docs/testing.md starts is one that docs/servers.md advises.
func TestTheImageOfThePageIsAdvised(t *testing.T) {
	t.Parallel()
	patch := func(page string, release *regexp.Regexp) int {
		found := release.FindStringSubmatch(read(t, page))
		require.NotNil(t, found, page)
		n, err := strconv.Atoi(found[1])
		require.NoError(t, err)
		return n
	}
	least := patch("docs/servers.md", advised)
	require.GreaterOrEqual(t, patch("docs/testing.md", started), least)
	require.Contains(t, read(t, "docs/testing.md"), strconv.Quote(image))
}
