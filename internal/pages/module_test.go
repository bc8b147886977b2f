package pages_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	libraryPath = "github.com/zkrecipes/recipes"

	// Below the library's: so harnesses can use what its own tests share.
	modulePath = libraryPath + "/internal/pages/blocks"
)

// A module has all blocks, each in a package of its own, and a test that runs the
// harnesses.
type module struct {
	dir     string
	sources []*source
	stdin   io.Reader // of what run runs next; nil: nothing
}

// newModule writes the module in dir. What is there already stays, if it is the same.
func newModule(t *testing.T, dir string) *module {
	t.Helper()
	m := &module{dir: dir}
	var imports, runs strings.Builder
	for _, b := range blocks(t) {
		if b.isFile() || b.harness == container && os.Getenv("MUST") == "" {
			continue
		}
		s := newSource(t, packageOf(len(m.sources)), b)
		m.sources = append(m.sources, s)
		m.write(t, filepath.Join(s.pkg, s.pkg+".go"), s.code)
		if !s.isProgram() {
			fmt.Fprintf(&imports, "\t%s %q\n", s.pkg, modulePath+"/"+s.pkg)
			fmt.Fprintf(&runs, "\tt.Run(%q, %s.Run)\n", s.where(), s.pkg)
		}
	}
	m.removeFrom(t, len(m.sources))
	m.write(t, "run_test.go", fmt.Sprintf(
		"package blocks\n\nimport (\n\t\"testing\"\n\n%s)\n\n"+
			"func TestBlocks(t *testing.T) {\n%s}\n", &imports, &runs))
	m.writeGoMod(t)
	return m
}

// keptDir is where the blocks were in the last run, too. The go command's cache knows a
// package by its directory: in a new one it would compile and vet all of them again.
func keptDir(t *testing.T) string {
	t.Helper()
	library, err := filepath.Abs(root)
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	sum := sha256.Sum256([]byte(library))
	return filepath.Join(cache, "recipes-pages", fmt.Sprintf("%x", sum[:8]))
}

// writeGoMod has the module need what the library needs, with MUST what the containers of
// its tests need, too, and the library as it stands here. A workspace would be shorter,
// but wants modules that nothing is built of.
func (m *module) writeGoMod(t *testing.T) {
	t.Helper()
	library, err := filepath.Abs(root)
	require.NoError(t, err)
	var language []byte
	var needs, sums bytes.Buffer
	needed := []string{""}
	if os.Getenv("MUST") != "" {
		needed = append(needed, "internal/zkserver/containers")
	}
	for _, dir := range needed {
		mod, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
		require.NoError(t, err)
		language = goLine.Find(mod)
		for _, block := range requirements.FindAll(mod, -1) {
			needs.Write(block)
		}
		sum, err := os.ReadFile(filepath.Join(root, dir, "go.sum"))
		require.NoError(t, err)
		sums.Write(sum)
	}
	m.write(t, "go.mod", fmt.Sprintf(
		"module %s\n\n%s\n%s\nrequire %s v0.0.0\n\nreplace %[4]s => %[5]q\n",
		modulePath, language, &needs, libraryPath, library))
	m.write(t, "go.sum", sums.String())
}

// These match lines of a go.mod: the version of Go, and what requires modules.
var (
	goLine       = regexp.MustCompile(`(?m)^go .*\n`)
	requirements = regexp.MustCompile(`(?m)^require (?:\((?s:.*?)^\)|[^(\n]+)\n`)
)

// packageOf is the package of the block with that index.
func packageOf(i int) string { return fmt.Sprintf("b%02d", i) }

// removeFrom removes the blocks of an earlier run, when the pages had more.
func (m *module) removeFrom(t *testing.T, i int) {
	t.Helper()
	for ; ; i++ {
		dir := filepath.Join(m.dir, packageOf(i))
		if _, err := os.Stat(dir); err != nil {
			return
		}
		require.NoError(t, os.RemoveAll(dir))
	}
}

func (m *module) write(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(m.dir, name)
	if old, err := os.ReadFile(name); err == nil && string(old) == text {
		return // another run may be reading it
	}
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// run runs go in the module, with no network, and returns what it wrote to standard
// output, and that with what it wrote to standard error.
func (m *module) run(t *testing.T, args ...string) (stdout, all string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = m.dir
	command.Env = append(os.Environ(),
		"GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	command.Stdin = m.stdin
	var out, errs strings.Builder
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	return out.String(), m.withOrigins(out.String() + errs.String()), err
}

var inSource = regexp.MustCompile(`(?:\S*/)?\bb(\d\d)\.go:(\d+)`)

// withOrigins names the pages and harnesses instead of the sources made of them.
func (m *module) withOrigins(text string) string {
	return inSource.ReplaceAllStringFunc(text, func(place string) string {
		found := inSource.FindStringSubmatch(place)
		i, _ := strconv.Atoi(found[1])
		line, _ := strconv.Atoi(found[2])
		if i >= len(m.sources) {
			return place
		}
		return m.sources[i].origin(line)
	})
}
