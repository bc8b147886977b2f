package pages_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A goPackage is what "go list" tells of one.
type goPackage struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
}

// goPackages are all of this module that git knows: a folder in which somebody tries
// something is nobody's business.
func goPackages(t *testing.T) []goPackage {
	t.Helper()
	isTracked := tracked(t)
	list := exec.CommandContext(t.Context(), "go", "list", "-json", "./...")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	var found []goPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		if isTracked(p.Dir) {
			found = append(found, p)
		}
	}
}

// tracked tells of folders whether git knows a file of Go in them. It knows all where git
// is not there, or the sources are no clone.
func tracked(t *testing.T) func(dir string) bool {
	t.Helper()
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	list := exec.CommandContext(t.Context(), "git", "ls-files", "*.go")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return func(string) bool { return true }
	}
	dirs := map[string]bool{}
	for file := range strings.Lines(string(out)) {
		dirs[filepath.Join(top, filepath.Dir(file))] = true
	}
	return func(dir string) bool { return dirs[dir] }
}

// within returns those of the imports that are of this module, as CONTRIBUTING.md writes
// them, without itself.
func (p *goPackage) within(imports ...[]string) []string {
	var found []string
	for _, i := range slices.Concat(imports...) {
		if i != p.ImportPath && ours(i) {
			found = append(found, roomOf(i))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func ours(importPath string) bool {
	return importPath == libraryPath || strings.HasPrefix(importPath, libraryPath+"/")
}

// roomOf is how CONTRIBUTING.md writes a package.
func roomOf(importPath string) string {
	if importPath == libraryPath {
		return path.Base(libraryPath)
	}
	return strings.TrimPrefix(importPath, libraryPath+"/")
}

// beyond returns the imports that are neither of this module nor of the standard library.
func (p *goPackage) beyond() []string {
	var found []string
	for _, i := range p.Imports {
		first, _, _ := strings.Cut(i, "/")
		if strings.Contains(first, ".") && !ours(i) {
			found = append(found, i)
		}
	}
	return found
}

var quoted = regexp.MustCompile("`([^`]+)`")

// rooms reads the tables of CONTRIBUTING.md whose last column has the given title: the
// packages that the first column names, with those that the last one does.
func rooms(t *testing.T, title string) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	found := map[string][]string{}
	inside := false
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			inside = false
		case last == title:
			inside = true
		case inside && !strings.HasPrefix(line, "| ---"):
			name := quoted.FindStringSubmatch(cells[0])[1]
			found[name] = []string{}
			for _, m := range quoted.FindAllStringSubmatch(last, -1) {
				found[name] = append(found[name], m[1])
			}
			slices.Sort(found[name])
		}
	}
	require.NotEmpty(t, found, "no table with a column %q", title)
	return found
}

// The house is as CONTRIBUTING.md draws it: a room knows those that its row names, and no
// others. What is built into programs needs nothing but the client besides.
func TestRoomsAreAsCONTRIBUTINGHasThem(t *testing.T) {
	library, tests := rooms(t, "imports"), rooms(t, "imports, tests included")
	for _, p := range goPackages(t) {
		room := roomOf(p.ImportPath)
		t.Run(room, func(t *testing.T) {
			if imports, ok := library[room]; ok {
				require.Equal(t, imports, append([]string{}, p.within(p.Imports)...))
				for _, other := range p.beyond() {
					require.Equal(t, "github.com/go-zookeeper/zk", other)
				}
				return
			}
			imports, ok := tests[room]
			require.True(t, ok, "it has no row in CONTRIBUTING.md")
			require.Equal(t, imports, append([]string{},
				p.within(p.Imports, p.TestImports, p.XTestImports)...))
		})
	}
}

// The arrows never turn back: whom a room of the library knows comes below it.
func TestTheTableOfRoomsGoesDown(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	row := func(room string) int { return strings.Index(string(page), "\n| `"+room+"`") }
	for room, imports := range rooms(t, "imports") {
		for _, other := range imports {
			require.Greater(t, row(other), row(room), "%s knows %s", room, other)
		}
	}
}
