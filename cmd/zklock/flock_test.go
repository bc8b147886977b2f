package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// held has another process hold $P until there is a file go.
const held = `$L $P sh -c '>held; until test -e go; do sleep 0.02; done' & ` +
	`until test -e held; do sleep 0.02; done; `

// flockScripts are what people write with flock(1): $L is "flock" or "zklock run", and $P
// is the lock.
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
		`$L $how $P true; echo $?; done; >go; wait`,
	held + `for s in INT TERM HUP; do env --default-signal $L $P true & ` +
		`until ps -o args= -p $! | grep -q true; do sleep 0.02; done; sleep 0.5; ` +
		`kill -$s $!; wait $!; echo $?; done 2>/dev/null; >go; wait`,
	`(trap '' TERM PIPE USR1 ALRM; $L $P grep SigIgn /proc/self/status)`,
	`$L $P grep SigBlk /proc/self/status`,
	`env --block-signal $L $P grep SigBlk /proc/self/status`,
	`env --block-signal=HUP,INT,QUIT,TERM,ABRT $L $P bash -c 'for s in HUP INT QUIT ` +
		`TERM ABRT; do kill -$s $PPID $$; done; echo lives'`,
	held + `for s in HUP INT QUIT TERM ABRT USR1; do env --block-signal=$s $L $P ` +
		`true & until ps -o args= -p $! | grep -q "^$L"; do sleep 0.02; done; sleep 0.5; ` +
		`kill -$s $!; sleep 0.1; kill -0 $! && echo waits; kill -KILL $!; done; ` +
		`>go; wait`,
	`$L $P grep SigIgn /proc/self/status & wait`,
	`(trap '' PIPE; $L $P sh -c 'yes; echo $? >code' | true) 2>/dev/null; cat code`,
	`$L $P yes 2>&1 | head -1`, `set -o pipefail; $L $P yes | head -1`,
	`exec <&-; $L $P true`, `exec >&-; $L $P true`, `umask 77; $L $P sh -c umask`,
	`nice -n 5 $L $P nice`,
	`ulimit -n 99; $L $P sh -c 'ulimit -n'`,
	`nohup $L $P grep SigIgn /proc/self/status`, `set -m; $L $P sh -c 'exit 9' & wait $!`,
	`unset PATH; $(echo $L) $P ls -d /`,
}

// Who types zklock run for flock gets the same output and the same exit code.
func TestAsFlock(t *testing.T) {
	need(t, "flock", "util-linux")
	for i, script := range flockScripts {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			servers := zktest.Start(t).ConnectString()
			run := func(program, lock string) string {
				path, err := exec.LookPath(program)
				require.NoError(t, err)
				cmd := exec.Command("bash", "-c", script)
				if program == "zklock" {
					path += " run"
				}
				cmd.Dir = t.TempDir()
				cmd.Env = append(os.Environ(), "L="+path, "P="+lock,
					"ZOOKEEPER_SERVERS="+servers)
				out, _ := cmd.Output() // the code says it
				return fmt.Sprintf("%s%v", out, cmd.ProcessState)
			}
			require.Equal(t, run("flock", "f"), run("zklock", "/f"), script)
		})
	}
}
