package pages_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// bash runs a script at the repository's root, with those variables on top of an
// environment that says nothing of CI.
func bash(t *testing.T, script string, env ...string) (out string, ok bool) {
	t.Helper()
	zkserver.Programs(t, "bash", "grep", "sed", "git")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "CI=", "INSTALL=")
	cmd.Env = append(cmd.Env, env...)
	said, err := cmd.CombinedOutput()
	return string(said), err == nil
}

// stub writes a program that stands in for another, and returns its path.
func stub(t *testing.T, name, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return file
}

// onPath is a PATH with stubs ahead of all else.
func onPath(stubs ...string) string {
	path := "PATH="
	for _, file := range stubs {
		path += filepath.Dir(file) + ":"
	}
	return path + os.Getenv("PATH")
}

// The check for known vulnerabilities could not fail: "go run" exits with 1 whatever the
// tool exits with, and only one module was looked at.
func TestTheCheckForVulnerabilitiesCanFail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool, ci string
		ok       bool
		said     string
	}{
		"nothing found": {"exit 0", "", true, ""},
		"found":         {"exit 3", "", false, "in: . "},
		"found in one module": {
			`case $PWD in */chaos) exit 3;; esac`, "", false, "in: test/chaos",
		},
		"not checked":       {"exit 1", "", true, "Not checked"},
		"not checked in CI": {"exit 1", "true", false, "Not checked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, ok := bash(t, "scripts/vulnerabilities.sh", "CI="+c.ci,
				"GOVULNCHECK="+stub(t, "govulncheck", c.tool))
			require.Equal(t, c.ok, ok, out)
			require.Contains(t, out, c.said)
		})
	}
}

// The targets of the modules beside the library's could not be run from its directory.
func TestEachFuzzTargetIsRun(t *testing.T) {
	t.Parallel()
	where, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		tool string
		ok   bool
	}{
		"nothing found": {`echo "$PWD: $*"`, true},
		"found":         {`case $PWD in */cmd/zklock) exit 1;; esac`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, ok := bash(t, "scripts/fuzz.sh", "FUZZ_TIME=3s",
				onPath(stub(t, "go", c.tool)))
			require.Equal(t, c.ok, ok, out)
			if !ok {
				return
			}
			require.Contains(t, out, "cmd/zklock: test")
			for target, dir := range fuzzTargets(t, where) {
				want := ": test -run ^$ -fuzz ^" + target + "$ -fuzztime 3s .\n"
				require.Contains(t, out, dir+want)
			}
		})
	}
}

// fuzzTargets are the directories of all fuzz targets below one.
func fuzzTargets(t *testing.T, below string) map[string]string {
	t.Helper()
	declared, found := regexp.MustCompile(`(?m)^func (Fuzz\w+)`), map[string]string{}
	err := filepath.WalkDir(below, func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, target := range declared.FindAllSubmatch(text, -1) {
			found[string(target[1])] = filepath.Dir(path)
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(found), 10)
	return found
}

// compiler stands in for the one that makes the checker of a model, which says that.
func compiler(t *testing.T, pan string) string {
	t.Helper()
	return stub(t, "gcc", `printf '#!/bin/sh\necho "`+pan+`"\n' >pan; chmod +x pan`)
}

// A checker of models that has found nothing where it must, or something where it must
// not, or has given up, fails the script.
func TestTheCheckOfTheModelsCanFail(t *testing.T) {
	t.Parallel()
	spin := stub(t, "spin", "exit 0")
	// Stands in for the go command, which records the traces: many, two at a time.
	records := stub(t, "go", `: >"$TRACES_PML/accepted_a-notification.pml"
for i in 1 2 3 4; do : >"$TRACES_PML/rejected_left-behind-$i.pml"; done`)
	twoProcessors := stub(t, "nproc", "echo 2")
	for name, c := range map[string]struct {
		pan, check string
		ok         bool
		said       string
	}{
		"as expected":   {"pan: errors: 0", "holds kept", true, "all as expected"},
		"a refuter":     {"pan:1: assertion violated", "refuted kept", true, "1 checks"},
		"nothing found": {"pan: errors: 0", "refuted kept", false, "1 of 1 checks"},
		"found": {
			"pan:1: assertion violated", "holds kept", false, "1 of 1 checks",
		},
		"too deep": {
			"pan: errors: 0, max search depth too small", "holds kept", false,
			"undecided",
		},
		"a cycle": {"pan:1: non-progress", "acyclic kept", false, "refuted"},
		"killed":  {"", "holds kept", false, "undecided"},
		"a trace": {
			"pan:1: assertion violated (seen!=9)", "accepted a-notification", true,
			"1 checks",
		},
		"a broken trace": {
			"pan:1: assertion violated (seen!=9)", "rejected left-behind-1", false,
			"1 of 1 checks",
		},
		"a trace that the model cannot tell": {
			"pan: errors: 0", "accepted a-notification", false, "1 of 1 checks",
		},
		"the first of many wrong": {"pan: errors: 0", "--traces", false, "1 of 5 checks"},
		"all but the first wrong": {
			"pan:1: assertion violated (seen!=9)", "--traces", false, "4 of 5 checks",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, ok := bash(t, "scripts/model.sh "+c.check,
				onPath(spin, compiler(t, c.pan), records, twoProcessors))
			require.Equal(t, c.ok, ok, out)
			require.Contains(t, out, c.said)
		})
	}
}

// The script records the traces by the name of a test, and leaves them where it looks.
func TestTheCheckOfTheModelsRecordsTraces(t *testing.T) {
	t.Parallel()
	gcc := compiler(t, "pan:1: assertion violated (seen!=9)")
	out, ok := bash(t, "scripts/model.sh accepted a-notification",
		onPath(stub(t, "spin", "exit 0"), gcc),
		"CC=cc") // what the go command may compile is none of the checker's
	require.True(t, ok, out)
	require.Contains(t, out, "1 checks")
}

// A fault that survives is found by its line's text: mutants.txt has no numbers of lines.
func TestTheSearchForMutantsCanFail(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "lossclock", "timeline.go"))
	require.NoError(t, err)
	const known = "if stood >= unnoticed || stood < 0 {"
	before, _, found := strings.Cut(string(source), known)
	require.True(t, found)
	line := strings.Count(before, "\n") + 1
	lived := func(column int) string {
		return fmt.Sprintf("echo ' LIVED CONDITIONALS_BOUNDARY at timeline.go:%d:%d'",
			line, column)
	}
	for name, c := range map[string]struct {
		tool string
		ok   bool
		said string
	}{
		"all are found":         {"echo ' KILLED INVERT_LOGICAL at a.go:1:1'", true, ""},
		"a known one is not":    {lived(33), true, "LIVED"},
		"another one is not":    {lived(11), false, "CONDITIONALS_BOUNDARY 10: " + known},
		"the tool does not run": {"exit 1", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, ok := bash(t, "scripts/mutants.sh internal/lossclock",
				"GREMLINS="+stub(t, "gremlins", c.tool))
			require.Equal(t, c.ok, ok, out)
			require.Contains(t, out, c.said)
		})
	}
}

// The test command installed packages with sudo without a question.
func TestPackagesAreNotInstalledWithSudoUnasked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env string
		ok  bool
	}{
		"nobody to ask": {"NOTHING=", false},
		"in CI":         {"CI=true", true},
		"with --yes":    {"INSTALL=yes", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sudo := stub(t, "sudo", "exit 0")
			out, ok := bash(t, ". scripts/zookeeper.sh; may_install a package </dev/null",
				c.env, onPath(sudo))
			require.Equal(t, c.ok, ok, out)
		})
	}
}

// scripts/tag.sh made tags that nobody could check.
func TestTagsAreSigned(t *testing.T) {
	t.Parallel()
	gpg := stub(t, "gpg", `cat >/dev/null; echo "[GNUPG:] SIG_CREATED " >&2
echo "-----BEGIN PGP SIGNATURE-----"; echo "-----END PGP SIGNATURE-----"`)
	dir := t.TempDir()
	git := "cd " + dir + ` && git -c user.name=a -c user.email=a@b.example `
	out, ok := bash(t, "cp -R scripts "+dir+" && "+git+"init --quiet && "+git+
		"add . && "+git+"-c commit.gpgsign=false commit --quiet --message a")
	require.True(t, ok, out)

	alone := []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}
	out, ok = bash(t, dir+"/scripts/tag.sh v1.2.3", alone...)
	require.False(t, ok, out)
	require.Contains(t, out, "Tags are signed: name your key")

	out, ok = bash(t, git+"config user.signingkey key && "+git+"config gpg.program "+gpg+
		" && "+git+"config user.name a && "+git+"config user.email a@b.example && "+
		"scripts/tag.sh v1.2.3 && "+git+"cat-file tag v1.2.3", alone...)
	require.True(t, ok, out)
	require.Contains(t, out, "Now: git push origin v1.2.3")
	require.Contains(t, out, "BEGIN PGP SIGNATURE")
}
