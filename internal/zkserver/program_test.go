package zkserver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContainerProgramIsNextToTheSources(t *testing.T) {
	t.Parallel()
	dir, err := programDir()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "main.go"))

	_, err = programNextTo("github.com/zkrecipes/recipes/internal/zkserver/program.go")
	require.ErrorContains(t, err, "built with -trimpath")

	_, err = programNextTo(filepath.Join(t.TempDir(), "program.go"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "no sources of the container program")
}

func TestContainerProgramThatDoesNotBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module broken\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { undefined() }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	p, err := startProgram(dir)
	require.NoError(t, err)
	for range 2 {
		err = p.call(t.Context(), "Find", args{"Name": defaultImage}, &struct{}{})
		require.ErrorContains(t, err, "the container program ended (exit status 1)")
		require.ErrorContains(t, err, "undefined: undefined", "what the compiler says")
	}
}

// Without a trace of an engine nothing is downloaded and built.
func TestTracesOfAContainerEngine(t *testing.T) {
	if _, err := os.Stat("/var/run/docker.sock"); err == nil {
		require.True(t, mayHaveEngine())
		return
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("DOCKER_HOST", "")
	require.False(t, mayHaveEngine())
	t.Run("what findSource says", func(t *testing.T) {
		t.Setenv("PATH", "") // nothing can be built
		t.Setenv("ZOOKEEPER_HOME", t.TempDir())
		_, err := findSource("real")
		require.ErrorIs(t, err, errNone)
		require.ErrorContains(t, err, "no trace of a container engine")
	})

	require.NoError(t, os.MkdirAll(filepath.Join(home, ".docker/run"), 0o700))
	socket := filepath.Join(home, ".docker/run/docker.sock")
	require.NoError(t, os.WriteFile(socket, nil, 0o600))
	require.True(t, mayHaveEngine())
	require.NoError(t, os.Remove(socket))
	require.False(t, mayHaveEngine())

	t.Setenv("DOCKER_HOST", "tcp://engine:2375")
	require.True(t, mayHaveEngine())
}
