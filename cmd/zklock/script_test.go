package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/zktest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"zklock": main, guardName: main, proveWorkerName: main, "two-locks": twoLocks,
	})
}

// patience bounds what a test waits for.
const patience = time.Minute

// shortest is the shortest wait for a lock in a script.
const shortest = 100 * time.Millisecond

// Each script has a server of its own. What it can do beyond testscript's commands is in
// serverCommands and processCommands.
func TestScripts(t *testing.T) {
	root, err := os.Getwd()
	require.NoError(t, err)
	// What is caught here is not ignored there, as it would be under nohup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	t.Cleanup(func() { signal.Reset(syscall.SIGHUP) })
	adoptOrphans() // and never wait for them: see orphans.txt
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			cluster, err := zktest.New()
			if err != nil {
				return err
			}
			env.Defer(cluster.Close)
			env.Values["cluster"] = cluster
			env.Setenv("ROOT", root)
			env.Setenv("ZOOKEEPER_SERVERS", cluster.ConnectString())
			env.Setenv("TZ", noon())
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "background": background, "await": await, "gone": gone,
			"signal": send, "server": server, "znodes": znodes,
			"watches": watchesSet, "stopped": stopped, "fetch": fetch,
			"outlived": outlived, "proves": proves,
		},
	})
}

// noon is a time zone in which no day ends during a script: those who come on one day,
// by zklock once, are in one period.
func noon() string {
	return fmt.Sprintf("NOON%d", time.Now().UTC().Hour()-12)
}

// exits CODE PROGRAM ARGS... runs a program, which must exit with the code. What waits
// for a lock has as little as shortest (zklock run -w): one that the machine has let
// stand still for that long rightly says that it knows nothing, and is made again. So is
// one that was not told within busyWithin who has the lock.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	for began := time.Now(); ; {
		attempt := time.Now()
		err := ts.Exec(args[1], args[2:]...)
		code := 0
		if ended := (&exec.ExitError{}); errors.As(err, &ended) {
			code = shellCode(ended.ProcessState)
		} else {
			ts.Check(err)
		}
		got := strconv.Itoa(code)
		took := time.Since(attempt)
		untold := took > busyWithin &&
			strings.Contains(ts.ReadFile("stderr"), errBusy.Error()+": "+somebody)
		if got == args[0] && !neg && !untold {
			return
		}
		stoodStill := untold || code == exitUnavailable && took > shortest
		if !stoodStill || time.Since(began) > patience {
			ts.Fatalf("exit code %s, not %s", got, args[0])
		}
	}
}

// proves PROGRAM ARGS... runs a proof that finds nothing. If its judge stood still, as a
// machine does at times, it decides nothing. $CODE and $VERDICT tell which it was.
func proves(ts *testscript.TestScript, _ bool, args []string) {
	code, verdict := "0", "PROVEN"
	if err := ts.Exec(args[0], args[1:]...); err != nil {
		if !strings.Contains(ts.ReadFile("stdout"), "the judge did not run for") {
			ts.Fatalf("%v", err)
		}
		code, verdict = strconv.Itoa(exitUndecided), "UNDECIDED"
	}
	ts.Setenv("CODE", code)
	ts.Setenv("VERDICT", verdict)
}

// shellCode is a shell's $?.
func shellCode(of *os.ProcessState) int {
	return exitCode(of.Sys().(syscall.WaitStatus))
}

// background NAME PROGRAM ARGS... starts a program, whose output goes to NAME.out, and
// its process id, and at the end its exit code, to NAME.pid and NAME.code.
func background(ts *testscript.TestScript, _ bool, args []string) {
	name := args[0]
	path := exec.Cmd{Path: args[1]}.Path
	if !strings.Contains(path, "/") {
		found, err := exec.LookPath(path)
		ts.Check(err)
		path = found
	}
	out, err := os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Args[0] = args[1]
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), out, out
	cmd.Env = append(os.Environ(), "TZ="+ts.Getenv("TZ"),
		"ZOOKEEPER_SERVERS="+ts.Getenv("ZOOKEEPER_SERVERS"))
	ts.Check(cmd.Start())
	pid := strconv.Itoa(cmd.Process.Pid)
	ts.Check(os.WriteFile(ts.MkAbs(name+".pid"), []byte(pid), 0o600))
	code := ts.MkAbs(name + ".code")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the code says it
		_ = out.Close()
		text := strconv.Itoa(shellCode(cmd.ProcessState)) + "\n"
		_ = os.WriteFile(code, []byte(text), 0o600) // else the script fails
	}()
	ts.Defer(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-done
	})
}

// await FILE REGEXP waits until the file matches.
func await(ts *testscript.TestScript, _ bool, args []string) {
	want := regexp.MustCompile("(?m)" + args[1])
	var text []byte
	until(ts, func() bool {
		text, _ = os.ReadFile(ts.MkAbs(args[0]))
		return want.Match(text)
	}, func() string { return args[0] + " is no " + args[1] + ":\n" + string(text) })
}

// gone FILE... waits until the processes are gone whose ids are in the files.
func gone(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		for id := range strings.FieldsSeq(ts.ReadFile(file)) {
			until(ts, func() bool { return !runs(id) },
				func() string { return file + ": " + id + " still runs" })
		}
	}
}

// outlived REGEXP FILE... waits until the processes are gone whose ids are in the files.
// A znode that matches is there still; unless the machine has stood still meanwhile for
// longer than the time that zklock keeps in hand for that.
func outlived(ts *testscript.TestScript, neg bool, args []string) {
	watch := simulator.StartWatchdog()
	gone(ts, neg, args[1:])
	left := clusterOf(ts).Znodes()
	if late := watch.Late(); late > grace {
		ts.Logf("the machine stood still for %v", late)
		return
	}
	if !slices.ContainsFunc(left, regexp.MustCompile(args[0]).MatchString) {
		ts.Fatalf("of the znodes none is %s:\n%s", args[0], strings.Join(left, "\n"))
	}
}

// stopped FILE waits until the process stands still whose id is in the file.
func stopped(ts *testscript.TestScript, _ bool, args []string) {
	id := strings.TrimSpace(ts.ReadFile(args[0]))
	until(ts, func() bool { return strings.HasPrefix(state(id), "T") },
		func() string { return args[0] + ": " + id + " is not stopped" })
}

// state is what ps says of a process; "" where it is gone.
func state(id string) string {
	stat, _ := exec.Command("ps", "-o", "stat=", "-p", id).Output()
	return strings.TrimSpace(string(stat))
}

// runs is false for a zombie, which nobody may wait for in a container.
func runs(id string) bool {
	is := state(id)
	return is != "" && !strings.HasPrefix(is, "Z")
}

// signal NAME FILE sends a signal to the process whose id is in the file.
func send(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]syscall.Signal{
		"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT,
		"QUIT": syscall.SIGQUIT,
		"USR1": syscall.SIGUSR1, "HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP,
		"CONT": syscall.SIGCONT, "TTIN": syscall.SIGTTIN, "TTOU": syscall.SIGTTOU,
		"RTMIN+3": syscall.Signal(37), "ALRM": syscall.SIGALRM,
	}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(args[1])))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signals[args[0]]))
}

func clusterOf(ts *testscript.TestScript) *zktest.Cluster {
	return ts.Value("cluster").(*zktest.Cluster)
}

// server is what happens to the server: expire, freeze, thaw, cut, heal, sequence PATH N,
// create PATH [DATA], ephemeral PATH [DATA], set PATH DATA, delete PATH, swap PATH (for a
// znode that is not ephemeral), many PREFIX N, guard PATH USER:PASSWORD, allow PATH
// ACL.... A backslash in an argument means what it does in Go.
func server(ts *testscript.TestScript, _ bool, args []string) {
	cluster := clusterOf(ts)
	for i, arg := range args {
		if unquoted, err := strconv.Unquote(`"` + arg + `"`); err == nil {
			args[i] = unquoted
		}
	}
	switch args[0] {
	case "expire":
		for _, session := range cluster.Sessions() {
			cluster.ExpireSession(session)
		}
	case "freeze":
		cluster.Link("").Freeze()
	case "cut":
		cluster.Link("").Cut()
	case "heal":
		cluster.Link("").Heal()
	case "thaw":
		cluster.Link("").Thaw()
	case "sequence":
		n, err := strconv.ParseInt(args[2], 10, 32)
		ts.Check(err)
		ts.Check(cluster.SetSequence(args[1], int32(n)))
	case "create", "guard", "allow", "many", "set", "ephemeral", "delete",
		"swap":
		conn, err := connectAlone(cluster.Addrs())
		ts.Check(err)
		if args[0] == "ephemeral" {
			ts.Defer(conn.Close)
		} else {
			defer conn.Close()
		}
		ts.Check(write(conn, args))
	default:
		ts.Fatalf("server %s: unknown", args[0])
	}
}

// write is what server does to znodes.
func write(conn *zk.Conn, args []string) error {
	path, data, world := args[1], "", zk.WorldACL(zk.PermAll)
	if len(args) > 2 {
		data = args[2]
	}
	var err error
	switch args[0] {
	case "create":
		_, err = conn.Create(path, []byte(data), zk.FlagPersistent, world)
	case "ephemeral":
		_, err = conn.Create(path, []byte(data), zk.FlagEphemeral, world)
	case "delete":
		err = conn.Delete(path, -1)
	case "swap":
		_, err = conn.Multi(&zk.DeleteRequest{Path: path, Version: -1},
			&zk.CreateRequest{Path: path, Acl: world})
	case "set":
		_, err = conn.Set(path, []byte(data), -1)
	case "guard":
		user, password, _ := strings.Cut(data, ":")
		_, err = conn.Create(path, nil, zk.FlagPersistent,
			zk.DigestACL(zk.PermAll, user, password))
	case "allow":
		var all []zk.ACL
		for _, value := range args[2:] {
			acl, err := parseACL(value)
			if err != nil {
				return err
			}
			all = append(all, acl...)
		}
		_, err = conn.Create(path, nil, zk.FlagPersistent, all)
	case "many":
		n, _ := strconv.Atoi(data)
		for n > 0 && err == nil {
			part := min(n, 500)
			ops := make([]any, part)
			for i := range ops {
				ops[i] = &zk.CreateRequest{
					Path: fmt.Sprintf("%s%010d", path, n-i), Acl: world,
				}
			}
			_, err = conn.Multi(ops...)
			n -= part
		}
	}
	return err
}

// znodes N REGEXP waits until N znodes match.
func znodes(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	match := regexp.MustCompile(args[1])
	var all []string
	until(ts, func() bool {
		all = clusterOf(ts).Znodes()
		found := slices.DeleteFunc(slices.Clone(all),
			func(path string) bool { return !match.MatchString(path) })
		return len(found) == want
	}, func() string { return "the znodes are " + strings.Join(all, "\n") })
}

// watches N waits until N watches are set.
func watchesSet(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var set int
	until(ts, func() bool {
		set = clusterOf(ts).Watches()
		return set == want
	}, func() string { return strconv.Itoa(set) + " watches are set" })
}

func until(ts *testscript.TestScript, holds func() bool, otherwise func() string) {
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			ts.Fatalf("%s", otherwise())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

var servedAt = regexp.MustCompile(`serving on (http://\S+)/`)

// fetch FILE PATH REGEXP gets PATH from the zklock serve whose output is in FILE, until
// the answer matches.
func fetch(ts *testscript.TestScript, _ bool, args []string) {
	found := servedAt.FindStringSubmatch(ts.ReadFile(args[0]))
	if found == nil {
		ts.Fatalf("%s does not say where it serves", args[0])
	}
	want := regexp.MustCompile("(?m)" + args[2])
	var body []byte
	until(ts, func() bool {
		answer, err := http.Get(found[1] + args[1])
		ts.Check(err)
		defer answer.Body.Close()
		body, err = io.ReadAll(answer.Body)
		ts.Check(err)
		return want.Match(body)
	}, func() string { return args[1] + " is no " + args[2] + ":\n" + string(body) })
}
