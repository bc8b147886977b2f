package pages_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A compiled is what "go list -export" reports of one package.
type compiled struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// layered are the rooms whose doc.go lists their files.
var layered = []string{
	"internal/lockcache", "internal/leases", "internal/registration", "internal/seqnode", "internal/observe",
	"internal/znode", "internal/wait", "internal/zkconn", "internal/order",
	"internal/watches", "internal/reliance", "internal/wire", "internal/outcome",
	"internal/seqname",
}

// A room has one direction inside, too: its doc.go lists its files, and none of them uses
// what one above it declares: a type, a function, a method, a field.
func TestFilesUseThoseBelowThem(t *testing.T) {
	all := compileRooms(t)
	for _, room := range layered {
		t.Run(room, func(t *testing.T) {
			p := all[libraryPath+"/"+room]
			files := listedFiles(t, filepath.Join(p.Dir, "doc.go"))
			at := map[string]int{}
			for i, file := range files {
				at[file] = i
			}
			sorted := slices.Concat(files, []string{"doc.go"})
			slices.Sort(sorted)
			require.Equal(t, p.GoFiles, sorted, "the files in doc.go")
			for _, u := range usesBetweenFiles(t, all, p) {
				require.Less(t, at[u.from], at[u.to], "%s uses %s of %s, above it",
					u.from, u.name, u.to)
			}
		})
	}
}

var listedFile = regexp.MustCompile(`(?m)^//   - ([a-z_]+\.go):`)

// listedFiles returns the files that a doc.go lists, the topmost first.
func listedFiles(t *testing.T, doc string) (files []string) {
	t.Helper()
	page, err := os.ReadFile(doc)
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n// # Files\n")
	require.True(t, found, "%s has no section Files", doc)
	section, _, _ = strings.Cut(section, "\n// # ")
	for _, m := range listedFile.FindAllStringSubmatch(section, -1) {
		files = append(files, m[1])
	}
	return files
}

// compileRooms compiles the layered rooms, and returns them with all that they import.
func compileRooms(t *testing.T) map[string]compiled {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export",
		"-json=ImportPath,Dir,Export,GoFiles")
	for _, room := range layered {
		list.Args = append(list.Args, "./"+room)
	}
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	all := map[string]compiled{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p compiled
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[p.ImportPath] = p
	}
}

// A use is a name that one file uses and another one declares.
type use struct{ from, to, name string }

// usesBetweenFiles returns all uses within a package.
func usesBetweenFiles(t *testing.T, all map[string]compiled, p compiled) (uses []use) {
	t.Helper()
	fset := token.NewFileSet()
	files := make([]*ast.File, len(p.GoFiles))
	for i, name := range p.GoFiles {
		var err error
		files[i], err = parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
		require.NoError(t, err)
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := config.Check(p.ImportPath, fset, files, info)
	require.NoError(t, err)
	for ident, object := range info.Uses {
		from, to := fset.Position(ident.Pos()), fset.Position(object.Pos())
		if object.Pkg() == pkg && from.Filename != to.Filename {
			uses = append(uses, use{
				filepath.Base(from.Filename), filepath.Base(to.Filename), ident.Name,
			})
		}
	}
	return uses
}
