package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

// twoLocks is a program that acquires one lock, and at each line that it reads the next,
// in one session. An argument is KIND:PATH.
func twoLocks() {
	ctx := context.Background()
	client, err := recipes.Connect(ctx, os.Getenv("ZOOKEEPER_SERVERS"), 30*time.Second)
	if err != nil {
		panic(err)
	}
	in := bufio.NewReader(os.Stdin)
	for i, arg := range os.Args[1:] {
		if i > 0 {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
		}
		kind, path, _ := strings.Cut(arg, ":")
		var err error
		switch kind {
		case "lease":
			var s *recipes.InterProcessSemaphoreV2
			s, err = recipes.NewInterProcessSemaphoreV2(client, path, 1)
			if err == nil {
				_, err = s.Acquire(recipes.WithOwner(ctx))
			}
		default:
			var lock recipes.InterProcessLock
			lock, err = map[string]func() (recipes.InterProcessLock, error){
				"mutex": func() (recipes.InterProcessLock, error) {
					return recipes.NewInterProcessMutex(client, path)
				},
				"read": func() (recipes.InterProcessLock, error) {
					both, err := recipes.NewInterProcessReadWriteLock(client, path)
					return both.ReadLock(), err
				},
				"write": func() (recipes.InterProcessLock, error) {
					both, err := recipes.NewInterProcessReadWriteLock(client, path)
					return both.WriteLock(), err
				},
			}[kind]()
			if err == nil {
				err = lock.Acquire(recipes.WithOwner(ctx))
			}
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(arg)
	}
	_, _ = in.ReadString('\n')
}

// A party is a process with some locks.
type party struct {
	t  *testing.T
	in *os.File
}

// newParty returns when the process has its first lock.
func newParty(t *testing.T, cluster *zktest.Cluster, locks ...string) *party {
	t.Helper()
	program := exec.Command("two-locks", locks...)
	program.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+cluster.ConnectString())
	stdin, in, err := os.Pipe()
	require.NoError(t, err)
	program.Stdin = stdin
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	_ = stdin.Close()
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_, _ = in.Close(), program.Wait() // it was killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, locks[0]+"\n", line)
	return &party{t: t, in: in}
}

// goOn has the process acquire its next lock, and returns when there are so many znodes.
func (p *party) goOn(cluster *zktest.Cluster, znodes int) {
	p.t.Helper()
	_, err := p.in.WriteString("\n")
	require.NoError(p.t, err)
	require.Eventually(p.t, func() bool {
		n := 0
		for _, znode := range cluster.Znodes() {
			if strings.Contains(znode, "_c_") {
				n++
			}
		}
		return n >= znodes
	}, patience, 10*time.Millisecond, "%q", cluster.Znodes())
}

// deadlocksOf is what zklock says of all locks.
func deadlocksOf(t *testing.T, cluster *zktest.Cluster) (text string, code int) {
	t.Helper()
	doctor := exec.Command("zklock", "doctor", "--deadlocks", "/")
	doctor.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+cluster.ConnectString())
	out, _ := doctor.CombinedOutput() // the code says it
	return string(out), doctor.ProcessState.ExitCode()
}

func TestDeadlocks(t *testing.T) {
	const session = `session 0x[0-9a-f]+`
	for name, c := range map[string]struct {
		parties [][]string
		circle  string // a regular expression; "": there is none
	}{
		"two mutexes": {
			[][]string{{"mutex:/a", "mutex:/b"}, {"mutex:/b", "mutex:/a"}},
			`possible: ` + session + ` holds /a and waits for /b, behind ` + session +
				`, which holds /b and waits for /a, since 20`,
		},
		"a read/write lock and a semaphore": {
			[][]string{{"read:/rw", "lease:/s"}, {"lease:/s", "write:/rw"}},
			`possible: ` + session + ` holds /rw and waits for /s, behind ` + session +
				`, which holds /s and waits for /rw, since 20`,
		},
		"three in a ring": {
			[][]string{
				{"mutex:/a", "mutex:/b"},
				{"mutex:/b", "mutex:/c"},
				{"mutex:/c", "mutex:/a"},
			},
			`possible: ` + session + ` holds /a and waits for /b, behind ` + session +
				`, which holds /b and waits for /c, behind ` + session +
				`, which holds /c and waits for /a, since 20`,
		},
		"a crowd": {
			[][]string{
				{"mutex:/a"},
				{"mutex:/b", "mutex:/a"},
				{"mutex:/c", "mutex:/a"},
				{"read:/rw", "mutex:/b"},
				{"read:/rw", "mutex:/c"},
				{"lease:/s", "write:/rw"},
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := zktest.Start(t)
			var all []*party
			for _, locks := range c.parties {
				all = append(all, newParty(t, cluster, locks...))
			}
			znodes := len(all)
			for i, p := range all {
				if len(c.parties[i]) > 1 {
					znodes++
					p.goOn(cluster, znodes)
				}
			}
			text, code := deadlocksOf(t, cluster)
			if c.circle == "" {
				require.Zero(t, code, text)
				return
			}
			require.Equal(t, exitFindings, code, text)
			require.Regexp(t, c.circle, text)
			require.Equal(t, 1, strings.Count(text, "possible"), text)
		})
	}
}

// Of runs inside each other each has a session of its own, and they are one all the same.
func TestDeadlockOfRuns(t *testing.T) {
	cluster := zktest.Start(t)
	dir := t.TempDir()
	for _, locks := range [][2]string{{"/a", "/b"}, {"/b", "/a"}} {
		run := exec.Command("zklock", "run", locks[0], "sh", "-c", ">."+locks[0]+
			"; until test -e a -a -e b; do sleep 0.05; done; zklock run "+locks[1]+
			" true")
		run.Dir = dir
		run.Env = append(os.Environ(), "ZOOKEEPER_SERVERS="+cluster.ConnectString())
		require.NoError(t, run.Start())
		t.Cleanup(func() {
			_ = run.Process.Kill()
			_ = run.Wait() // it was killed
		})
	}
	text, code := "", 0
	require.Eventually(t, func() bool {
		text, code = deadlocksOf(t, cluster)
		return code == exitFindings
	}, patience, 200*time.Millisecond)
	require.Regexp(t, `possible: session 0x[0-9a-f]+ holds /a and waits for /b, behind `+
		`session 0x[0-9a-f]+, which holds /b and waits for /a, since|`+
		`possible: session 0x[0-9a-f]+ holds /b and waits for /a, behind `, text)
	// Each session is shown by its own run, which holds the lock, and not by one inside.
	require.Equal(t, 2, strings.Count(text, "?   session "), text)
	require.NotContains(t, text, "in a run of session")
}

// An age is told of only where it is far from the others.
func TestIsOld(t *testing.T) {
	minutes := func(all ...int) (ages []time.Duration) {
		for _, n := range all {
			ages = append(ages, time.Duration(n)*time.Minute)
		}
		return ages
	}
	require.True(t, isOld(time.Hour, minutes(60, 1, 2)))
	require.False(t, isOld(time.Hour, minutes(60)))
	require.False(t, isOld(time.Hour, minutes(60, 20, 30)))
	require.False(t, isOld(30*time.Second, []time.Duration{30 * time.Second, 0, 0}))
}

// doctor asks a server that talks TLS for its version, and any other.
func TestVersionOverTLS(t *testing.T) {
	cert, key := keyPair(t)
	config, err := (&connection{tlsCA: cert, tlsCert: cert, tlsKey: key}).tls()
	require.NoError(t, err)
	server := config.Clone()
	cluster := zktest.Start(t, zktest.WithTLS(server))
	_, port, _ := strings.Cut(cluster.Addrs()[0], ":")
	out, err := exec.Command("zklock", "--servers", "localhost:"+port, "--tls-ca", cert,
		"doctor", "/l").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `(?m)^ok  localhost:\d+ is ZooKeeper 3`, string(out))
	require.Empty(t, askVersion("localhost:"+port, nil))
}
