package pages_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// A block is one of Go in a page.
type block struct {
	where   string // "README.md:17"
	harness string // of testdata, "" of one that is a program
	text    string
}

var harnessComment = regexp.MustCompile(`^<!-- go: (\S+) -->$`)

// blocks are those of all pages.
func blocks(t *testing.T) (found []block) {
	t.Helper()
	for _, p := range pages(t) {
		var b *block
		harness := ""
		for i, line := range p.lines {
			m := harnessComment.FindStringSubmatch(line)
			switch {
			case m != nil:
				harness = m[1]
			case b == nil && line == "```go":
				b = &block{fmt.Sprintf("%s:%d", p.name, i+1), harness, ""}
				harness = ""
			case b != nil && line == "```":
				found = append(found, *b)
				b = nil
			case b != nil:
				b.text += line + "\n"
			}
		}
		require.Nil(t, b, "%s: a block of code does not end", p.name)
		require.Empty(t, harness, "%s: a harness without a block", p.name)
	}
	require.NotEmpty(t, found)
	return found
}

// program is the block as the compiler is to see it.
func (b block) program(t *testing.T) string {
	t.Helper()
	if strings.HasPrefix(b.text, "package ") {
		require.Empty(t, b.harness, "%s: a program needs no harness", b.where)
		return b.text
	}
	require.NotEmpty(t, b.harness, "%s: no program, and no harness is named", b.where)
	text, err := os.ReadFile(filepath.Join("testdata", b.harness+".txt"))
	require.NoError(t, err, b.where)
	require.Equal(t, 1, strings.Count(string(text), "//block\n"), b.harness)
	return strings.Replace(string(text), "//block\n", "//line "+b.where+"\n"+b.text, 1)
}

// module writes programs, each a package of its own, in a module beside the library.
func module(t *testing.T, programs []string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	library, err := filepath.Abs(root)
	require.NoError(t, err)
	needs, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	mod := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(
		string(needs), "module pages",
	)
	mod += fmt.Sprintf("\nrequire github.com/zkrecipes/recipes v0.0.0\n\n"+
		"replace github.com/zkrecipes/recipes => %s\n", library)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))
	for i, text := range programs {
		at := filepath.Join(dir, fmt.Sprintf("p%02d", i))
		require.NoError(t, os.Mkdir(at, 0o700))
		name := "main.go"
		if strings.Contains(text, `"testing"`) {
			name = "page_test.go"
		}
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
	}
	return dir
}

// run runs go in a module, with no network.
func run(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := command.CombinedOutput()
	return string(out), err
}

func TestEveryBlockCompiles(t *testing.T) {
	t.Parallel()
	var programs []string
	for _, b := range blocks(t) {
		programs = append(programs, b.program(t))
	}
	out, err := run(t, module(t, programs), "vet", "./...")
	require.NoError(t, err, out)
}

// TestTheFirstProgramRuns runs the README's, on a server that it has not to know.
func TestTheFirstProgramRuns(t *testing.T) {
	t.Parallel()
	const servers = "zk1:2181,zk2:2181,zk3:2181"
	cluster := zktest.Start(t)
	var first string
	for _, b := range blocks(t) {
		if strings.HasPrefix(b.where, "README.md:") &&
			strings.HasPrefix(b.text, "package main") {
			first = b.text
			break
		}
	}
	require.Equal(t, 1, strings.Count(first, servers))
	dir := module(t, []string{
		strings.Replace(first, servers, cluster.ConnectString(), 1),
	})
	out, err := run(t, dir, "run", "./p00")
	require.NoError(t, err, out)
	require.Contains(t, out, "only one process is here")
}
