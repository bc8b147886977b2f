package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The unit of the page is one that systemd takes, without a warning.
func TestUnitOfThePage(t *testing.T) {
	need(t, "systemd-analyze", "systemd")
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```ini\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, block, "the page has a unit")
	text := strings.ReplaceAll(string(block[1]), "/usr/local/bin/zklock", "/bin/true")
	unit := filepath.Join(t.TempDir(), "scheduler.service")
	require.NoError(t, os.WriteFile(unit, []byte(text), 0o600))
	verify := exec.Command("systemd-analyze", "verify", "--man=no", unit)
	out, err := verify.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "scheduler.service:", "%s", out)
}
