//go:build unix

package kerberos

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever can write a cache, or has planted it, would choose who this process is.
func TestACacheOfSomebodyElse(t *testing.T) {
	file := write(t, "cache", "")
	config := testConfig(t)
	login := func() error { return fromCacheError(file, config) }
	const accepted = "is not one, or is damaged"
	require.ErrorContains(t, login(), accepted)
	for _, mode := range []os.FileMode{0o666, 0o644, 0o620, 0o602, 0o640} {
		require.NoError(t, os.Chmod(file, mode))
		require.ErrorContains(t, login(), fmt.Sprintf("credential cache: %s has the "+
			"mode %04o: must be 0600", file, mode))
	}
	require.NoError(t, os.Chmod(file, 0o600))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(file, link))
	file = link
	require.ErrorContains(t, login(), accepted, "a link to a cache of one's own")
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	file, link = pipe, file
	require.ErrorContains(t, login(), "is no file")
	file = link
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	require.NoError(t, os.Chown(file, 12345, 12345))
	require.ErrorContains(t, login(), "belongs to the user 12345: must belong to the "+
		"user of this process, 0")
}
