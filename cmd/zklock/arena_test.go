package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// Batch systems limit the address space of jobs.
func TestLittleAddressSpace(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: it links zklock twice")
	}
	servers := zktest.Start(t).ConnectString()
	for _, cgo := range []string{"0", "1"} {
		program := filepath.Join(t.TempDir(), "zklock")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
		out, err := build.CombinedOutput()
		require.NoError(t, err, "CGO_ENABLED=%s: %s", cgo, out)
		run := exec.Command("sh", "-c",
			"ulimit -v 1000000; exec "+program+" run /l echo fits")
		run.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+servers)
		out, err = run.CombinedOutput()
		require.NoError(t, err, "CGO_ENABLED=%s: %s", cgo, out)
		require.Equal(t, "fits\n", string(out))
	}
}
