package pages_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// root is the repository's.
const root = "../.."

// A page is a Markdown file, by its path from the root.
type page struct {
	name  string
	lines []string
}

// pages are those that readers are sent to.
func pages(t *testing.T) (found []page) {
	t.Helper()
	for _, pattern := range []string{
		"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md",
		"docs/appendix/*.md", "docs/llms.txt", "[^d]*/README.md", "cmd/*/README.md",
		"examples/*/README.md",
		"adapters/*/README.md", "examples/ports/*/README.md",
	} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			name, err := filepath.Rel(root, file)
			require.NoError(t, err)
			found = append(found, page{name, strings.Split(string(text), "\n")})
		}
	}
	require.NotEmpty(t, found)
	return found
}

// lineLimit is how many characters a line has at most.
const lineLimit = 100

// TestLinesFit leaves tables out, whose rows cannot be broken, and links that are longer
// by themselves.
func TestLinesFit(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for i, line := range p.lines {
			switch {
			case strings.HasPrefix(strings.TrimSpace(line), "|"):
			case len(strings.Fields(line)) == 1:
			case strings.HasPrefix(line, "[!["): // a badge
			case utf8.RuneCountInString(line) > lineLimit:
				t.Errorf("%s:%d: over %d characters: %s", p.name, i+1, lineLimit, line)
			}
		}
	}
}

// A link is one of Markdown's, or the picture of a picture element.
var link = regexp.MustCompile(`(?:\]\(|\b(?:src|srcset)=")([^)"\s]+)[)"]`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	links := 0
	for _, p := range pages(t) {
		for i, line := range outsideCode(p.lines) {
			for _, found := range link.FindAllStringSubmatch(line, -1) {
				target, err := url.Parse(found[1])
				require.NoErrorf(t, err, "%s:%d", p.name, i+1)
				if target.Scheme != "" {
					continue // not asked: the gate needs no network
				}
				links++
				file := filepath.Join(root, p.name)
				if target.Path != "" {
					file = filepath.Join(filepath.Dir(file), target.Path)
				}
				text, err := os.ReadFile(file)
				info, statErr := os.Stat(file)
				switch {
				case statErr != nil:
					t.Errorf("%s:%d: nothing is at %s", p.name, i+1, found[1])
				case target.Fragment != "" && err == nil && !info.IsDir() &&
					!anchors(string(text))[target.Fragment]:
					t.Errorf("%s:%d: %s has no heading #%s",
						p.name, i+1, file, target.Fragment)
				}
			}
		}
	}
	require.NotZero(t, links)
}

// A cloneCommand runs or installs a program of the clone, by its directory.
var cloneCommand = regexp.MustCompile(
	`\bgo (?:(?:run|install) \./([\w/.]+)|-C ([\w/.]+) (?:run|install) \.)(?:\s|$)`)

// TestCommandsNamePrograms: whoever types what the README says finds a program there.
func TestCommandsNamePrograms(t *testing.T) {
	t.Parallel()
	found := 0
	for _, p := range pages(t) {
		for i, line := range p.lines {
			for _, m := range cloneCommand.FindAllStringSubmatch(line, -1) {
				found++
				main, err := filepath.Glob(filepath.Join(root, m[1]+m[2], "main.go"))
				require.NoError(t, err)
				if len(main) == 0 {
					t.Errorf("%s:%d: %s names no program", p.name, i+1, m[0])
				}
			}
		}
	}
	require.NotZero(t, found)
}

// outsideCode is the lines of a page, those of blocks of code blank.
func outsideCode(lines []string) []string {
	var found []string
	code := false
	for _, line := range lines {
		if strings.HasPrefix(line, "```") {
			code = !code
			line = ""
		}
		if code {
			line = ""
		}
		found = append(found, line)
	}
	return found
}

var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// An explicitAnchor keeps an old link valid.
var explicitAnchor = regexp.MustCompile(`^<a id="([a-z-]+)"></a>$`)

// anchors are the headings of a page as links write them, and its explicit anchors.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, line := range outsideCode(strings.Split(text, "\n")) {
		if m := explicitAnchor.FindStringSubmatch(line); m != nil {
			found[m[1]] = true
		}
		if heading := strings.TrimLeft(line, "#"); heading != line {
			name := strings.ToLower(strings.TrimSpace(heading))
			name = notInAnchors.ReplaceAllString(name, "")
			found[strings.ReplaceAll(name, " ", "-")] = true
		}
	}
	return found
}

var (
	namedTest = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	goTest    = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
)

// TestNamedTestsExist holds the pages to the tests that they call upon.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range goTest.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	for _, p := range pages(t) {
		for i, line := range p.lines {
			for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
				if !tests[m[1]] {
					t.Errorf("%s:%d: there is no test %s", p.name, i+1, m[1])
				}
			}
		}
	}
}
