package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root    = "../.."
	records = "test/api"
)

var update = flag.Bool("update", false, "record what is new")

// TestAPI reports a change that breaks callers, and one that nobody has recorded.
func TestAPI(t *testing.T) {
	exporting := map[string]bool{}
	for _, module := range []string{
		".", "otelrecipes", "kerberos", "adapters/gocronlock", "adapters/gooselock",
	} {
		for _, p := range public(t, module) {
			found := features(p)
			if len(found) == 0 {
				continue
			}
			name := path.Join(records, path.Base(p.Path())+".txt")
			exporting[filepath.Join(root, name)] = true
			t.Run(path.Base(name), func(t *testing.T) { check(t, name, found) })
		}
	}
	files, err := filepath.Glob(filepath.Join(root, records, "*"))
	require.NoError(t, err)
	for _, file := range files {
		require.True(t, exporting[file], "%s records a package that is gone", file)
	}
}

// check compares a record with what is found. With -update it adds what is new; only a
// person takes lines out.
func check(t *testing.T, name string, found []string) {
	t.Helper()
	file := filepath.Join(root, name)
	lines := recorded(t, file)
	if *update {
		lines = slices.Concat(lines, without(found, lines))
		slices.Sort(lines)
		text := strings.Join(lines, "\n") + "\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	for _, complaint := range complaints(name, lines, found) {
		t.Error(complaint)
	}
}

// recorded returns the lines of a record, none if there is no such file yet.
func recorded(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// complaints says what differs, and what to do about it.
func complaints(name string, recorded, found []string) []string {
	var said []string
	if gone := without(recorded, found); len(gone) > 0 {
		said = append(said, "This change breaks callers, who can depend on:\n\t"+
			strings.Join(gone, "\n\t")+"\nKeep that, and mark it as deprecated if it "+
			"has a successor. Before v1 it may go nevertheless: delete these lines "+
			"from "+name+", and say in CHANGELOG.md what callers write instead.")
	}
	if added := without(found, recorded); len(added) > 0 {
		said = append(said,
			"This is new in the API, and no release can take it back:\n\t"+
				strings.Join(added, "\n\t")+
				"\nIf it is meant to be public, record it in "+name+
				": go test ./internal/api -update")
	}
	return said
}

// without returns those of the lines that others does not have.
func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		return slices.Contains(others, line)
	})
}

// public returns the packages of a module that other modules can import.
func public(t *testing.T, module string) []*types.Package {
	t.Helper()
	type listed struct {
		ImportPath, Name, Export string
		DepOnly                  bool
	}
	which := "./..."
	if strings.HasPrefix(module, "adapters/") {
		which = "." // the rest is an example, which would take long to compile
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps",
		"-json=ImportPath,Name,Export,DepOnly", which)
	list.Dir, list.Stderr = filepath.Join(root, module), os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	var paths []string
	compiled := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p listed
		require.NoError(t, d.Decode(&p))
		compiled[p.ImportPath] = p.Export
		parts := strings.Split(p.ImportPath, "/")
		if !p.DepOnly && p.Name != "main" && !slices.Contains(parts, "internal") {
			paths = append(paths, p.ImportPath)
		}
	}
	load := importer.ForCompiler(token.NewFileSet(), "gc",
		func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })
	var packages []*types.Package
	for _, path := range paths {
		if compiled[path] == "" { // it has tests alone
			continue
		}
		p, err := load.Import(path)
		require.NoError(t, err)
		packages = append(packages, p)
	}
	return packages
}
