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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	godocLimit  = 1000 // lines of "go doc -all ." of the library
	optionLimit = 120  // words of the doc of an option
)

// documented are the packages whose docs users read, by their folders.
var documented = []string{".", "zktest", "otelrecipes"}

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

// avoided are terms that readers stumble over, each with what to say.
var avoided = [][2]string{
	{`all or none`, "all or nothing"},
	{`anew`, "again; recreated; starts over; rejoins"},
	{`asks? (nothing|little|for little)`, "sends no, or few, requests"},
	{`at the (most|least)`, "at most, at least"},
	{`bare`, "plain"},
	{`beside`, "next to; concurrently with"},
	{`can bear|bears?`, "tolerates"},
	{`(came|comes?) to differ`, "diverge"},
	{`could not be asked`, "could not be reached"},
	{`a cut`, "a network outage"},
	{`director(y|ies)`, "parent znode, lock path"},
	{`does no harm`, "is safe"},
	{`ends? by (itself|themselves)`, "expires"},
	{`for ever`, "forever"},
	{`for nothing`, "without requests"},
	{`for want of`, "for lack of"},
	{`free (lock|lease|semaphore)`, "uncontended"},
	{`g[ai]ves? (it |them |all )?(back|up)|giv(en|ing) (back|up)`, "release; relinquish"},
	{`hands? on|handed on`, "hand over"},
	{`(owner|holder|process) (who |that )?hangs`, "is stuck"},
	{`heeds?`, "acts on, respects"},
	{`held up`, "delayed"},
	{`in the end`, "eventually"},
	{`is at it`, "holds the lock"},
	{`is away`, "is unreachable"},
	{`is none any more`, "has left"},
	{`keeps? (a|no|its) place|place that is kept`, "a cached queue entry"},
	{`lets? in`, "admitted"},
	{`lock that excludes`, "exclusive lock"},
	{`ma(kes?|de) (a|an|its|no|their) znodes?`, "creates a znode"},
	{`mend(s|ed|ing)?`, "fix"},
	{`nobody knows`, "the state, or the outcome, is unknown"},
	{`once in a while`, "every 30 to 60 s"},
	{`presumed`, "assumption"},
	{`refus(e|es|ed|al|als|ing)`, "returns an error for; rejects"},
	{`retreat`, "orderly stop"},
	{`right ahead`, "predecessor"},
	{`rooms?`, "packages"},
	{`silences?`, "a period without responses"},
	{`sits? out`, "survive, tolerate"},
	{`stands? for election`, "be a candidate"},
	{`strangers?`, "unrelated znodes; untrusted clients"},
	{`strays?`, "orphaned znode"},
	{`surely`, "certainly; guaranteed; confirmed by"},
	{`taken for`, "treated as"},
	{`the own`, "its own; the waiter's"},
	{`tells?|told`, "notifies; receives; reports; returns"},
	{`tries once`, "is a single attempt"},
	{`who(so)?ever`, "a process that"},
	{`word from`, "a confirmation by"},
}

func TestGodocIsInPlainEnglish(t *testing.T) {
	t.Parallel()
	for _, folder := range documented {
		text := goDoc(t, folder)
		for _, term := range avoided {
			avoid := regexp.MustCompile(`(?i)\b(?:` +
				strings.ReplaceAll(term[0], " ", `\s+(?:// )?`) + `)\b`)
			for _, at := range avoid.FindAllStringIndex(text, -1) {
				t.Errorf("%s, line %d of go doc: %q: say %s", folder,
					1+strings.Count(text[:at[0]], "\n"), text[at[0]:at[1]], term[1])
			}
		}
	}
}
