package pages_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	godocLimit  = 1020 // lines of "go doc -all ." of the library
	optionLimit = 120  // words of the doc of an option
)

// documented are the packages whose docs users read, by their folders.
var documented = []string{
	".", "zktest", "otelrecipes", "otelrecipes/example", "cmd/zktest", "cmd/zklock",
	"examples/cache", "examples/counter", "examples/cron", "examples/leader",
	"examples/migrate", "bench", "chaos", "interop", "kerberos",
	"adapters/gocronlock", "adapters/gooselock", "adapters/gocronlock/example",
	"adapters/gooselock/example", "examples/ports/kvrocks", "examples/ports/mysync",
	"examples/ports/vitess",
}

// goDoc is what "go doc -all ." prints in a folder.
func goDoc(t *testing.T, folder string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "doc", "-all", ".")
	cmd.Dir = filepath.Join(root, folder)
	out, err := cmd.CombinedOutput()
	require.NoErrorf(t, err, "%s", out)
	return string(out)
}

func TestGodocIsShort(t *testing.T) {
	t.Parallel()
	lines := strings.Count(goDoc(t, "."), "\n")
	require.LessOrEqual(t, lines, godocLimit, "move details to a page of docs")
}

// TestGodocShowsNoInternals: a user cannot look up what an internal package declares.
func TestGodocShowsNoInternals(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob(filepath.Join(root, "internal", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	text := goDoc(t, ".")
	for _, folder := range folders {
		qualified := regexp.MustCompile(`\b` + filepath.Base(folder) + `\.[A-Z]\w*`)
		require.Empty(t, qualified.FindString(text))
	}
}

func TestOptionDocsAreShort(t *testing.T) {
	t.Parallel()
	options := 0
	for _, kind := range packageDoc(t, ".").Types {
		if !strings.HasSuffix(kind.Name, "Option") {
			continue
		}
		for _, option := range kind.Funcs {
			options++
			if words := len(strings.Fields(option.Doc)); words > optionLimit {
				t.Errorf("%s: %d words, limit %d: move details to a page of docs",
					option.Name, words, optionLimit)
			}
		}
	}
	require.GreaterOrEqual(t, options, 20)
}

// packageDoc is the doc of the package in a folder.
func packageDoc(t *testing.T, folder string) *doc.Package {
	t.Helper()
	files, set := []*ast.File(nil), token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	found, err := doc.NewFromFiles(set, files, folder)
	require.NoError(t, err)
	return found
}

// TestGodocNamesPagesThatExist holds "docs/fencing.md" to the folder docs.
func TestGodocNamesPagesThatExist(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`docs/[\w-]+\.md`).FindAllString(goDoc(t, "."), -1)
	require.NotEmpty(t, named)
	for _, page := range named {
		_, err := os.Stat(filepath.Join(root, page))
		require.NotErrorIs(t, err, fs.ErrNotExist)
	}
}

// inGodoc are terms that only comments may not have; the glossary has the others.
var inGodoc = []term{
	{`bare`, "plain"},
	{`director(y|ies)`, "parent znode, lock path"},
	{`lets? in`, "admitted"},
	{`tells?`, "notifies; receives; reports; returns"},
	{`tries once`, "is a single attempt"},
}

// inQuotes is what stands for itself: a name, or the value of an attribute.
var inQuotes = regexp.MustCompile(`"[^"\n]*"`)

func TestGodocIsInPlainEnglish(t *testing.T) {
	t.Parallel()
	for _, folder := range documented {
		text := inQuotes.ReplaceAllString(goDoc(t, folder), `"…"`)
		for _, g := range slices.Concat(glossary, inGodoc) {
			avoid := regexp.MustCompile(`(?i)(?:^|\W)(` +
				strings.ReplaceAll(g.avoid, " ", `\s+(?:// )?`) + `)(?:\W|$)`)
			for _, at := range avoid.FindAllStringSubmatchIndex(text, -1) {
				t.Errorf("%s, line %d of go doc: %q: say %s", folder,
					1+strings.Count(text[:at[2]], "\n"), text[at[2]:at[3]], g.say)
			}
		}
	}
}
