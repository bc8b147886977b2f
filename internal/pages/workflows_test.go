package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	uses   = regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	pinned = regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// A tag of an action can be moved to other code, a commit cannot.
func TestActionsArePinnedByCommit(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, action := range uses.FindAllStringSubmatch(string(text), -1) {
			found++
			require.Regexp(t, pinned, action[1], file)
		}
		require.Contains(t, string(text), "\npermissions:\n  contents: read\n", file)
	}
	require.NotZero(t, found)
}

var (
	aJob     = regexp.MustCompile(`(?m)^  (\w+):\n(?:    .*\n|\n|  # .*\n)+`)
	mayWrite = regexp.MustCompile(`(?m)^      [\w-]+: write\b`)
	// What runs code of the tag, or of others.
	runsCode = regexp.MustCompile(
		`setup-go|actions/checkout|\bgo (run|build|install)|scripts/`)
)

// A tool that a release runs could change its files, if the job that runs it could write.
func TestWhatPublishesARelease(t *testing.T) {
	t.Parallel()
	_, all, found := strings.Cut(read(t, ".github/workflows/release.yml"), "\njobs:\n")
	require.True(t, found)
	jobs := map[string]string{}
	for _, job := range aJob.FindAllStringSubmatch(all, -1) {
		jobs[job[1]] = job[0]
		require.False(t, mayWrite.MatchString(job[0]) && runsCode.MatchString(job[0]),
			"job %s may write, and runs code", job[1])
	}
	require.Len(t, jobs, 2)
	require.Regexp(t, `verify-tag\.sh(?s:.*)release\.sh`, jobs["build"])
	require.Regexp(t, mayWrite, jobs["publish"])
	notes := read(t, "scripts/release.sh")
	require.Contains(t, notes, "--signer-workflow ")
	require.Contains(t, notes, "--source-ref refs/tags/$tag")
}

// A release is made of a tag that its maintainer has signed.
func TestReleasesAreOfSignedTags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ref, tag string
		ok       bool
		said     string
	}{
		"signed":         {"tag 5", "true abc", true, ""},
		"not annotated":  {"commit abc", "true abc", false, "is not signed"},
		"bad signature":  {"tag 5", "false abc", false, "no valid signature"},
		"another commit": {"tag 5", "true def", false, "no valid signature for abc"},
		"no answer":      {"", "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh := filepath.Dir(stub(t, "gh", "case $2 in */git/ref/*) echo '"+c.ref+
				"' ;; *) echo '"+c.tag+"' ;; esac"))
			out, ok := bash(t, "scripts/verify-tag.sh v1.2.3 abc",
				"PATH="+gh+":"+os.Getenv("PATH"))
			require.Equal(t, c.ok, ok, out)
			require.Contains(t, out, c.said)
		})
	}
}
