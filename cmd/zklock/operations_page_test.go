package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// What ls prints of two paths that a typing error in a chroot has made is as the page has
// it, where "…" stands for something.
func TestTwoPathsAreAsThePageHasThem(t *testing.T) {
	cluster := zktest.Start(t)
	for chroot, data := range map[string]string{
		"/app": "host-1 (pid 5032)", "/ap": "host-2 (pid 5265)",
	} {
		client, err := recipes.Connect(t.Context(), cluster.ConnectString()+chroot,
			30*time.Second)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		lock, err := recipes.NewInterProcessMutex(client, "/locks/report",
			recipes.WithData([]byte(data)))
		require.NoError(t, err)
		_, err = recipes.Acquire(t.Context(), lock)
		require.NoError(t, err)
	}
	out, err := exec.Command("zklock", "--servers", cluster.ConnectString(), "ls", "-r",
		"/").CombinedOutput()
	require.NoError(t, err, "%s", out)

	page, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "\n### Two at work\n")
	_, text, ok := strings.Cut(text, " ls -r /     # without a chroot\n")
	require.True(t, ok)
	text, _, _ = strings.Cut(text, "```\n")
	columns := regexp.MustCompile(` +`)
	want := regexp.QuoteMeta(columns.ReplaceAllString(text, " "))
	require.Regexp(t, `\A`+strings.ReplaceAll(want, "…", ".*")+`\z`,
		columns.ReplaceAllString(string(out), " "))
}
