package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

func TestComplete(t *testing.T) {
	for line, want := range map[string]string{
		"zklock ru":                         "words run",
		"zklock run --ki":                   "words --kill-after",
		"zklock run --conn":                 "words --connect-timeout",
		"zklock --connect-timeout 1s wa":    "words watch",
		"zklock --connect-timeout wa":       "words",
		"zklock run -w 5 --sh":              "words --shared",
		"zklock run -w=5 --sh":              "words --shared",
		"zklock run /l":                     "words",
		"zklock run /l ":                    "commands",
		"zklock run /l --nonb":              "commands",
		"zklock run --data 'a b' /l -- ":    "commands",
		`zklock run --data "a b`:            "words",
		`zklock run --data a\ b /l -- `:     "commands",
		"zklock run -- /l -- ":              "commands",
		"zklock run /l -- sh ":              "files",
		"zklock run /l -- -- -":             "files",
		"zklock run /l sh --":               "files",
		"zklock once --per 1h /k sh x":      "files",
		"zklock lead /k ":                   "commands",
		"zklock register /k ":               "commands",
		"zklock register --kee":             "words --keep",
		"zklock --tls-ca ":                  "files",
		"zklock run --tls-cert=x":           "files",
		"zklock ls /l ":                     "words",
		"zklock ls --js":                    "words --json",
		"zklock ls > ":                      "files",
		"zklock ls >x":                      "files",
		"zklock ls 2>>x /l --js":            "words --json",
		"zklock ls 2> x /l --js":            "words --json",
		"zklock serve --ol":                 "words --old",
		"zklock serve --public --listen-c":  "words --listen-cert",
		"zklock serve --listen-key ":        "files",
		"zklock serve --old 1m /locks ":     "words",
		"zklock help wat":                   "words watch",
		"zklock help watch ":                "words",
		"zklock completion f":               "words fish",
		"zklock man ":                       "words",
		"zklock run --servers zk:1/x --sem": "words --semaphore",
	} {
		out := &strings.Builder{}
		complete(newApp(io.Discard, io.Discard), []string{"line", line}, out)
		meanings := regexp.MustCompile(`\t.*`)
		got := strings.Fields(meanings.ReplaceAllString(out.String(), ""))
		require.Equal(t, want, strings.Join(got, " "), line)
	}
	out := &strings.Builder{}
	complete(newApp(io.Discard, io.Discard), nil, out)
	complete(newApp(io.Discard, io.Discard), []string{"words"}, out)
	complete(newApp(io.Discard, io.Discard), []string{"line", ""}, out)
	require.Empty(t, out.String())
}

// needShell skips a test without a shell, or a file of one. With MUST set, it fails.
func needShell(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if strings.Contains(name, "/") {
		_, err = os.Stat(name)
	}
	if err != nil {
		zkserver.Lacking(t, fmt.Sprintf("there is no %s: install it "+
			"(on Debian, as root: apt-get install %s)", name, debian))
	}
	return path
}

// shellEnv is for a shell in an empty directory. It has zklock in PATH and servers that
// answer.
func shellEnv(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	bin := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "zklock")))
	return dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir,
		"ZOOKEEPER_SERVERS="+zktest.Start(t).ConnectString(), "TERM=dumb",
		"XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
}

// A screen is an interactive shell on a terminal.
type screen struct {
	t     *testing.T
	tty   *os.File
	dir   string
	mu    sync.Mutex // guards what follows
	shown strings.Builder
}

// startShell starts a shell and types the set-up.
func startShell(t *testing.T, setUp string, argv ...string) *screen {
	t.Helper()
	path := needShell(t, argv[0], argv[0])
	cmd := exec.Command(path, argv[1:]...)
	s := &screen{t: t}
	s.dir, cmd.Env = shellEnv(t)
	cmd.Dir = s.dir
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 100, Cols: 200})
	require.NoError(t, err)
	s.tty = tty
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s, tty) // up to an error, when the shell has ended
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		<-read
		_ = tty.Close()
	})
	s.shows("PS1='"+prompt+"'\n"+setUp+"\n", "")
	return s
}

// Write implements io.Writer.
func (s *screen) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Write(text)
}

// prompt is what the shell writes when it reads keys itself. Until then the terminal
// would deal with a TAB.
const prompt = "<ready>"

// prompted matches what is written after each line of keys.
var prompted = regexp.MustCompile(`(?s)done-42.*` + prompt)

// shows types keys, clears the line, and returns what the shell has written by then.
func (s *screen) shows(keys, want string) string {
	s.t.Helper()
	s.mu.Lock()
	s.shown.Reset()
	s.mu.Unlock()
	_, err := s.tty.WriteString(keys + "\x15echo done-$((40+2))\n")
	require.NoError(s.t, err)
	var shown string
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		shown = s.shown.String()
		s.mu.Unlock()
		if prompted.MatchString(shown) {
			break
		}
		if time.Now().After(deadline) {
			require.FailNow(s.t, "the shell is stuck", "%q", shown)
		}
	}
	require.Contains(s.t, shown, want, keys)
	return shown
}

// hostileLines are lines that do something if anybody evaluates, or runs, any of them.
var hostileLines = []string{
	"zklock run /l -- echo > made",
	"zklock run /l -- echo >made ",
	"zklock run /l -- touch made ",
	"zklock run /l touch made -",
	"zklock run /l $(touch made) ",
	"zklock run /l `touch made` -",
	"zklock run --data \"$(touch made)\" --",
	"zklock run --data \"$(touch made)",
	"zklock run --data ${x:=$(touch made)} --",
	"zklock run --servers $(touch made)/",
	"zklock $(touch made) ",
	"zklock <(touch made) --",
	"zklock '$(touch made)' --",
	"zklock ';touch made;' ",
	"zklock run /l -- $(touch made)",
	"zklock run /l -- `touch made`",
	"zklock run /l -- sh $(touch made)",
	"zklock run /l -- $(touch made)/x",
	"zklock run /l -- sh $(touch made)/x",
	"zklock --tls-ca $(touch made)/x",
	"zklock --tls-ca=`touch made`/x",
}

func (s *screen) executesNothing() {
	s.t.Helper()
	for _, line := range hostileLines {
		s.shows(line+"\t\t", "")
		left, err := os.ReadDir(s.dir)
		require.NoError(s.t, err)
		for _, one := range left {
			require.NotEqual(s.t, "made", one.Name(), line)
		}
	}
}

// offersAll tries what all shells have in common.
func (s *screen) offersAll() {
	s.t.Helper()
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, "a-file"), nil, 0o600))
	s.shows("zklock rev\t\t", "revoke")
	flags := s.shows("zklock run --\t\t", "--nonblock")
	for _, flag := range []string{
		"--wait", "--shared", "--conflict-exit-code", "--semaphore", "--connect-timeout",
	} {
		require.Contains(s.t, flags, flag)
	}
	s.shows("zklock run --data 'x y' --conf\t\t", "--conflict-exit-code")
	s.shows("zklock run --servers zk1:2181,zk2:2181/x --conf\t\t", "--conflict-exit-code")
	s.shows("zklock run --kill-after=5s --conf\t\t", "--conflict-exit-code")
	s.shows("zklock run /l -- zkloc\t\t", "zklock run /l -- zklock")
	s.shows("zklock run /l -- sh a-f\t\t", "a-file")
	s.shows("zklock run /l -- ./a-f\t\t", "a-file")
	s.shows("zklock run /l -- sh > a-f\t\t", "a-file")
	s.shows("zklock --tls-ca a-f\t\t", "a-file")
	s.shows("zklock --tls-ca=a-f\t\t", "a-file")
	require.NotContains(s.t, s.shows("zklock ls a-f\t\t", ""), "a-file")
}

// bashCompletion is the package bash-completion, without which zklock's completion works
// as well.
const bashCompletion = "/usr/share/bash-completion/bash_completion"

func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	setUp := `bind 'set show-all-if-ambiguous on'; bind 'set page-completions off'
bind 'set completion-query-items 0'; bind 'set enable-bracketed-paste off'
source <(zklock completion bash)`
	for name, before := range map[string]string{
		"alone": "", "with the package": "source " + bashCompletion + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			if before != "" {
				needShell(t, bashCompletion, "bash-completion")
			}
			s := startShell(t, before+setUp, "bash", "--norc", "--noprofile", "-i")
			s.offersAll()
			s.executesNothing()
		})
	}
}

func TestCompletionInZsh(t *testing.T) {
	t.Parallel()
	s := startShell(t, `autoload -U compinit; compinit -u -D; LISTMAX=9999
source <(zklock completion zsh)`, "zsh", "-f", "-i")
	s.offersAll()
	// Of any command zsh itself expands the word at the cursor first, if it is so bound.
	s.shows("bindkey '^I' complete-word\n", "")
	s.executesNothing()
}

// In a directory of fpath the script is the function itself.
func TestCompletionInZshIsLoadedByName(t *testing.T) {
	t.Parallel()
	s := startShell(t, `mkdir f; zklock completion zsh >f/_zklock; fpath=($PWD/f $fpath)
autoload -U compinit; compinit -u -D; LISTMAX=9999`, "zsh", "-f", "-i")
	s.offersAll()
}

func TestCompletionInFish(t *testing.T) {
	t.Parallel()
	fish := needShell(t, "fish", "fish")
	dir, env := shellEnv(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a-file"), nil, 0o600))
	offers := func(line string) string {
		cmd := exec.Command(fish, "--no-config", "-c",
			"zklock completion fish | source; complete -C $argv[1]", "--", line)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, offers("zklock rev"), "revoke\task the holder")
	flags := offers("zklock run --")
	for _, flag := range []string{
		"--nonblock", "--wait", "--shared", "--conflict-exit-code", "--semaphore",
	} {
		require.Contains(t, flags, flag+"\t")
	}
	require.Contains(t, offers("zklock run --data 'x y' --conf"), "--conflict-exit-code")
	require.Contains(t, offers("zklock run /l -- zkloc"), "zklock")
	for _, line := range []string{
		"zklock run /l -- ./a-f", "zklock run /l ./a-f", "zklock run /l -- sh a-f",
		"zklock --tls-ca a-f",
	} {
		require.Contains(t, offers(line), "a-file", line)
	}
	require.NotContains(t, offers("zklock ls a-f"), "a-file")
	for _, line := range hostileLines {
		offers(strings.NewReplacer("$(", "(", "`", "").Replace(line))
		_, err := os.Stat(filepath.Join(dir, "made"))
		require.ErrorIs(t, err, os.ErrNotExist, line)
	}
}
