package pages_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What can be read in one go: how large a room of the library is at most, without its
// tests, and what stands in it. The root has all recipes, and a limit of files instead,
// with its tests.
const (
	roomLines    = 1800
	structFields = 14
	funcLines    = 60
	rootFiles    = 34
)

func TestRoomsOfTheLibraryAreSmall(t *testing.T) {
	for room := range rooms(t, "imports") {
		t.Run(room, func(t *testing.T) {
			dir := filepath.Join(root, room)
			if room == roomOf(libraryPath) {
				dir = root
				all, err := filepath.Glob(filepath.Join(dir, "*.go"))
				require.NoError(t, err)
				require.LessOrEqual(t, len(all), rootFiles, "files of Go")
			}
			lines := 0
			for _, file := range goFiles(t, dir) {
				lines += measure(t, file)
			}
			if dir != root {
				require.LessOrEqual(t, lines, roomLines, "lines")
			}
		})
	}
}

// goFiles returns the files of a package, without its tests.
func goFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, file := range all {
		if !strings.HasSuffix(file, "_test.go") {
			files = append(files, file)
		}
	}
	require.NotEmpty(t, files, dir)
	return files
}

// measure checks the structs and functions of a file, and returns its lines.
func measure(t *testing.T, file string) (lines int) {
	t.Helper()
	source, err := os.ReadFile(file)
	require.NoError(t, err)
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, source, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StructType:
			if n.Fields.NumFields() > structFields {
				t.Errorf("%s: a struct of %d fields: at most %d",
					fset.Position(n.Pos()), n.Fields.NumFields(), structFields)
			}
		case *ast.FuncDecl:
			if long := height(fset, n); long > funcLines {
				t.Errorf("%s: %s has %d lines: at most %d",
					fset.Position(n.Pos()), n.Name.Name, long, funcLines)
			}
		}
		return true
	})
	return strings.Count(string(source), "\n")
}

// height is how many lines a function takes, without the comment above it.
func height(fset *token.FileSet, f *ast.FuncDecl) int {
	return fset.Position(f.End()).Line - fset.Position(f.Type.Pos()).Line + 1
}
