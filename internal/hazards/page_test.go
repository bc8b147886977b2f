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
	page = root + "/docs/hazards.md"
)

var (
	headLine   = regexp.MustCompile(`^\| (id|---) \|`) // the two above a table's rows
	rowID      = regexp.MustCompile(`^[A-Z]\d+(_\d+)?$`)
	testName   = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	notTested  = regexp.MustCompile(`\bnot tested( yet)?: \S`)
	hazardTest = regexp.MustCompile(`^TestHazard[A-Z]`)
	// The id that a TestHazard carries: a row's, or the beginning of the ids of a group.
	carriedID = regexp.MustCompile(`^TestHazard([A-Z]\d+(?:_\d+)?)_`)
)

// The page names tests that exist, has for each row a test or the reason why there is
// none, and each TestHazard stands in a row whose id it carries.
func TestHazardsPageNamesTests(t *testing.T) {
	t.Parallel()
	tests := testsBelow(t, root)
	rowsOf := map[string][]string{} // the ids of the rows that name a test
	ids := map[string]bool{}
	for _, l := range readPage(t) {
		for _, test := range l.tests {
			if !tests[test] {
				t.Errorf("%s:%d: there is no test %s", page, l.number, test)
			}
			rowsOf[test] = append(rowsOf[test], l.id)
		}
		if l.id == "" {
			continue
		}
		if ids[l.id] {
			t.Errorf("%s:%d: there are two rows %s", page, l.number, l.id)
		}
		ids[l.id] = true
		if !testName.MatchString(l.shownBy) && !notTested.MatchString(l.shownBy) {
			t.Errorf("%s:%d: %s names no test and does not say why", page, l.number, l.id)
		}
	}
	require.NotEmpty(t, ids)
	for test := range tests {
		if hazardTest.MatchString(test) && !standsInItsRow(test, rowsOf[test]) {
			t.Errorf("%s: no row of %s names it whose id it carries", test, page)
		}
	}
}

// A line of the page.
type line struct {
	number  int
	tests   []string // those that it names
	id      string   // of a row; else empty
	shownBy string   // a row's last cell
}

// readPage returns the lines of the page. A line of a table that is neither its head nor
// a row is an error.
func readPage(t *testing.T) (lines []line) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	for raw := range strings.Lines(string(text)) {
		l := line{number: len(lines) + 1}
		for _, name := range testName.FindAllStringSubmatch(raw, -1) {
			l.tests = append(l.tests, name[1])
		}
		if strings.HasPrefix(raw, "|") && !headLine.MatchString(raw) {
			cells := strings.Split(strings.Trim(raw, "| \n"), " | ")
			if len(cells) == 4 && rowID.MatchString(cells[0]) {
				l.id, l.shownBy = cells[0], cells[3]
			} else {
				t.Errorf("%s:%d: not a row of an id and three columns", page, l.number)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// standsInItsRow reports whether one of the rows is that whose id a TestHazard carries,
// or belongs to the group whose id it carries.
func standsInItsRow(test string, rows []string) bool {
	carried := carriedID.FindStringSubmatch(test)
	return carried != nil && slices.ContainsFunc(rows, func(id string) bool {
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
