package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// held has another process hold $P until there is a file go.
const held = `$L $P sh -c '>held; until test -e go; do sleep 0.02; done' & ` +
	`until test -e held; do sleep 0.02; done; `

// queued waits until $! stands in the queue, if it is zklock's: while Go's runtime starts
// it takes signals that are blocked.
const queued = `case $L in *zklock*) until ${L% run} ls $P | grep -q "pid $!,"; ` +
	`do sleep 0.02; done;; esac; `

// flockScripts are what people write with flock(1): $L is "flock" or "zklock run", and $P
// is the lock. A zklock that has no answer in so short a time as it may wait exits with
// 69, and flock does not.
var flockScripts = []string{
	`$L $P true`, `$L $P false`, `$L $P sh -c 'exit 7'`, `echo in | $L $P cat`,
	`$L $P echo '$HOME;' '*' -n --`, `$L -x $P echo x`, `$L -s $P $L -s $P echo s`,
	`$L $P sh -c 'kill -KILL $$'`, `$L $P sh -c 'kill -USR1 $$'`,
	`$L $P sh -c 'kill -TERM $$'; echo $?`, `$L $P sh -c 'kill -SEGV $$'; echo $?`,
	`echo 'echo "$@"; exit 5' >plain; chmod 755 plain; $L $P ./plain a 'b c'`,
	`mkdir bin; echo 'echo $0' >bin/prog; chmod 755 bin/prog; PATH=bin:$PATH $L $P prog`,
	`>empty; chmod 755 empty; $L $P ./empty`,
	held + `for how in -nE3 "-xnE 4" "-w0.1 -E5" ` +
		`"--timeout 0.1 --conflict-exit-code 6" "--nb -E7" "-E8 -w .1" "-sn -E9"; do ` +
		`until $L $how $P true; r=$?; [ $r != 69 ]; do :; done; echo $r; done; >go; wait`,
	held + `for s in INT TERM HUP; do env --default-signal $L $P true & ` +
		`until ps -o args= -p $! | grep -q true; do sleep 0.02; done; sleep 0.5; ` +
		`kill -$s $!; wait $!; echo $?; done 2>/dev/null; >go; wait`,
	`(trap '' TERM PIPE USR1 ALRM; $L $P grep SigIgn /proc/self/status)`,
	`$L $P grep SigBlk /proc/self/status`,
	`env --block-signal $L $P grep SigBlk /proc/self/status`,
	`env --block-signal=HUP,INT,QUIT,TERM,ABRT $L $P bash -c 'for s in HUP INT QUIT ` +
		`TERM ABRT; do kill -$s $PPID $$; done; echo lives'`,
	held + `for s in HUP INT QUIT TERM ABRT USR1; do env --block-signal=$s $L $P ` +
		`true & until ps -o args= -p $! | grep -q "^$L"; do sleep 0.02; done; ` +
		queued + `kill -$s $!; sleep 0.1; kill -0 $! && echo waits; ` +
		`kill -KILL $!; done; >go; wait`,
	`$L $P grep SigIgn /proc/self/status & wait`,
	`(trap '' PIPE; $L $P sh -c 'yes; echo $? >code' | true) 2>/dev/null; cat code`,
	`$L $P yes 2>&1 | head -1`, `set -o pipefail; $L $P yes | head -1`,
	`exec <&-; $L $P true`, `exec >&-; $L $P true`, `umask 77; $L $P sh -c umask`,
	`nice -n 5 $L $P nice`,
	`ulimit -n 99; $L $P sh -c 'ulimit -n'`,
	`nohup $L $P grep SigIgn /proc/self/status`, `set -m; $L $P sh -c 'exit 9' & wait $!`,
	`unset PATH; $(echo $L) $P ls -d /`,
	`exec 3>out; $L $P sh -c 'echo x >&3'; cat out`, `exec $L $P echo x`,
	`timeout 0.3 $L $P sleep 60; echo $?`, `timeout -s INT 0.3 $L $P sleep 60; echo $?`,
	`$L $P sleep 60 >/dev/null 2>&1 & sleep 0.5; kill -KILL $!; wait $!; echo $?`,
	`printf '1\n2\n3\n' | xargs -n1 $L $P echo`, `yes | $L $P head -1`,
	`printf '1\n2\n' | while read n; do $L $P echo $n; done`,
	`printf '1\n2\n' | while read n; do $L $P cat; done`, `x=$($L $P echo v); echo $x`,
	`set -e; $L $P false; echo no`, `$L $P echo x >/dev/full; echo $?`,
	`$L $P sh -c 'kill -INT $$'; echo $?`, `$L $P sh -c 'kill -QUIT $$'; echo $?`,
	`$L $P sh -c 'sleep 0.3; echo late' & wait; echo done`,
	`(trap '' HUP; $L $P sh -c 'kill -HUP $$; echo alive')`, `setsid -w $L $P echo 1`,
	`ulimit -t 1; $L $P sh -c 'while :; do :; done'; echo $?`,
	`$L $P sh -c 'ulimit -c; ulimit -s; ulimit -v'`, `$L $P cat /proc/self/limits`,
	`taskset 1 $L $P grep Cpus_allowed: /proc/self/status`, `ionice -c3 $L $P ionice`,
	`$L $P grep -E 'NoNewPrivs|Seccomp:|Cap|Groups' /proc/self/status`,
	`$L $P cat /proc/self/oom_score_adj /proc/self/timerslack_ns`,
	`$L -s $P true && $L --shared $P echo 1`, `$L --exclusive --wait=1 $P echo 1`,
	`$L $P; echo $?`, `$L -E 300 $P true; echo $?`, `$L -w x $P true; echo $?`,
}

// scriptShells has for each shell how it is called, and the scripts that it runs: all, or
// those in which the shell has a part.
var scriptShells = map[string]struct {
	call string
	runs *regexp.Regexp
}{
	"bash": {"bash", regexp.MustCompile("")}, "zsh": {"zsh -y", shellMatters},
	"dash": {"dash", shellMatters},
}

var shellMatters = regexp.MustCompile("kill|trap|&|[|]")

// Who types zklock run for flock gets the same output and the same exit code.
func TestAsFlock(t *testing.T) {
	need(t, "flock", "util-linux")
	for shell, of := range scriptShells {
		need(t, shell, shell)
		for i, script := range flockScripts {
			if !of.runs.MatchString(script) {
				continue
			}
			t.Run(fmt.Sprint(shell, i), func(t *testing.T) {
				t.Parallel()
				asFlock(t, strings.Fields(of.call), script)
			})
		}
	}
}

func asFlock(t *testing.T, shell []string, script string) {
	t.Helper()
	servers := zktest.Start(t).ConnectString()
	run := func(program, lock string) string {
		path, err := exec.LookPath(program)
		require.NoError(t, err)
		cmd := exec.Command(shell[0], append(shell[1:len(shell):len(shell)],
			"-c", script)...)
		if program == "zklock" {
			path += " run"
		}
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "L="+path, "P="+lock, "ZOOKEEPER_SERVERS="+servers)
		out, _ := cmd.Output() // the code says it
		return fmt.Sprintf("%s%v", out, cmd.ProcessState)
	}
	require.Equal(t, run("flock", "f"), run("zklock", "/f"), script)
}
