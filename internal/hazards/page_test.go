package hazards_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root = "../.."
	page = root + "/docs/appendix/hazards.md"
)

var (
	itemHead   = regexp.MustCompile(`^- \*\*([A-Z]\d+(?:_\d+)?)\*\* \S`)
	testName   = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	notTested  = regexp.MustCompile(`\bnot tested( yet)?: \S`)
	hazardTest = regexp.MustCompile(`^TestHazard[A-Z]`)
	// The id that a TestHazard carries: an item's, or the beginning of a group's ids.
	carriedID = regexp.MustCompile(`^TestHazard([A-Z]\d+(?:_\d+)?)_`)
)

// The page names tests that exist, has for each item a test or the reason why there is
// none, and each TestHazard stands in an item whose id it carries.
func TestHazardsPageNamesTests(t *testing.T) {
	t.Parallel()
	tests := testsBelow(t, root)
	itemsOf := map[string][]string{} // the ids of the items that name a test
	ids := map[string]bool{}
	for _, it := range readPage(t) {
		if ids[it.id] {
			t.Errorf("%s:%d: there are two items %s", page, it.line, it.id)
		}
		ids[it.id] = true
		named := testName.FindAllStringSubmatch(it.tests, -1)
		if len(named) == 0 && !notTested.MatchString(it.tests) {
			t.Errorf("%s:%d: %s names no test and does not say why",
				page, it.line, it.id)
		}
		for _, test := range named {
			if !tests[test[1]] {
				t.Errorf("%s:%d: there is no test %s", page, it.line, test[1])
			}
			itemsOf[test[1]] = append(itemsOf[test[1]], it.id)
		}
	}
	require.NotEmpty(t, ids)
	for test := range tests {
		if hazardTest.MatchString(test) && !standsInItsItem(test, itemsOf[test]) {
			t.Errorf("%s: no item of %s names it whose id it carries", test, page)
		}
	}
}

// An item of the page: the hazard, a line break, and what shows that it is none here.
type item struct {
	line  int // its first
	id    string
	tests string // all behind the line break
}

// readPage returns the items of the page. Each list and table of the page is of items:
// whatever looks like another is an error.
func readPage(t *testing.T) (items []item) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	broken := false // whether the item's line break has been read
	for i, l := range strings.Split(string(text), "\n") {
		head := itemHead.FindStringSubmatch(l)
		switch {
		case head != nil:
			items = append(items, item{line: i + 1, id: head[1]})
			broken = false
		case strings.HasPrefix(l, "  ") && broken:
			items[len(items)-1].tests += l
		case strings.HasPrefix(l, "- ") || strings.HasPrefix(l, "|"):
			t.Errorf("%s:%d: not an item with an id", page, i+1)
		}
		broken = broken || strings.HasSuffix(l, `\`)
	}
	return items
}

// standsInItsItem reports whether one of the items is that whose id a TestHazard carries,
// or belongs to the group whose id it carries.
func standsInItsItem(test string, items []string) bool {
	carried := carriedID.FindStringSubmatch(test)
	return carried != nil && slices.ContainsFunc(items, func(id string) bool {
		return id == carried[1] || strings.HasPrefix(id, carried[1]+"_")
	})
}

// testsBelow returns the names of all test functions in a directory and below.
func testsBelow(t *testing.T, dir string) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	files := token.NewFileSet()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && notOurs(entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[f.Name.Name] = true
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, tests)
	return tests
}

// notOurs reports whether the go command, too, passes a directory by.
func notOurs(name string) bool {
	return name == "vendor" || name == "testdata" || name == "node_modules" ||
		strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}
