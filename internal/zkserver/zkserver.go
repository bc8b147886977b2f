// Package zkserver gives tests and examples a real ZooKeeper: one server or an ensemble,
// that can be frozen, killed and restarted.
//
// A test gets a zktest, which needs nothing but Go; with [Test] in virtual time, without
// it in real time. ZOOKEEPER_RUN asks for something else:
//
//   - local: an installation on this machine, run as child processes on free ports: the
//     release in ZOOKEEPER_HOME, or Debian's package libzookeeper-java. Java is that of
//     JAVA_HOME, or the one in PATH.
//   - container: a container engine, through testcontainers-go, that has, or can pull,
//     the image: ZOOKEEPER_IMAGE, or the official image of a pinned version. What needs
//     testcontainers-go is a program in a module of its own, ./containers. This package
//     builds and starts it once per process. It needs the sources for that, and cannot
//     find them if it is built with -trimpath.
//   - real: the first of these two that there is.
//   - embedded: zktest, which is the default.
//   - keeper: zktest as ClickHouse Keeper.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") are servers for [Shared] and [Find] only:
// what others use too is not ours to kill.
//
// A test that depends on what zktest does not have says so with [Real], and is skipped.
// One that needs sessions to be resumed says so with [Resuming]. With MUST set to
// anything, a test of the former kind runs, on a real server, and nothing is skipped
// because this machine lacks something: see [Lacking]. Without it, the last line of
// [Main] counts them.
//
// The servers that it starts listen on loopback, unless the container engine runs on
// another machine. All end with the process that started them, however it ends.
//
// A [Cluster] may be used by any number of goroutines, a [Server] by one at a time.
package zkserver

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Start gives tb a cluster of its own, which is gone when tb ends: one server, unless an
// option says otherwise.
func Start(tb testing.TB, opts ...Option) *Cluster {
	tb.Helper()
	c, err := openFor(tb, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

func openFor(tb testing.TB, opts []Option) (*Cluster, error) {
	tb.Helper()
	if n := networkOf(tb); n != nil {
		return openFrom(tb.Context(), embedded{n.keeper, n}, opts)
	}
	return open(tb.Context(), runOf(tb), opts)
}

// Shared gives the cluster that all tests of this binary share, each on its own [Path];
// it is started by the first test that asks, and stopped by [Main]. In a bubble it is the
// test's alone. Nobody may freeze or kill it.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	if n := networkOf(tb); n != nil {
		if n.shared == nil {
			n.shared = Start(tb)
		}
		return n.shared
	}
	if !inMain.Load() {
		tb.Fatal("zkserver: Shared needs a TestMain with os.Exit(zkserver.Main(m)): " +
			"who else would stop the server?")
	}
	c, err := shared(runOf(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Main runs the tests of m and stops the shared clusters that they started. It returns
// the exit code.
func Main(m *testing.M) int {
	inMain.Store(true)
	flag.Parse()
	if isEmbedded(os.Getenv("ZOOKEEPER_RUN")) && !benchmarks() {
		oneProcessor()
	}
	code := m.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if n := lacking.Load(); n > 0 {
		fmt.Printf("%d tests were skipped for what this run lacks; MUST=1 asks for it\n",
			n)
	}
	return code
}

// benchmarks tells whether the run is one of benchmarks.
func benchmarks() bool { return flag.Lookup("test.bench").Value.String() != "" }

// Real says that tb, with its subtests, depends on what zktest does not have. Where
// ZOOKEEPER_RUN, ZOOKEEPER_SERVERS or MUST asks for real servers it gets one, in real
// time, and otherwise it is skipped. Call it before [Test], [Start] and [Shared].
func Real(tb testing.TB, what string) {
	tb.Helper()
	run := os.Getenv("ZOOKEEPER_RUN")
	switch {
	case !isEmbedded(run) || run == "" && os.Getenv("ZOOKEEPER_SERVERS") != "":
	case run == "" && must():
		genuine.Store(tb.Name(), true)
	case run == "":
		Lacking(tb,
			"zktest does not have "+what+": ZOOKEEPER_RUN=real runs this test on "+
				"a container engine, or on a Java runtime and ZooKeeper "+
				"(Debian: apt-get install default-jre-headless libzookeeper-java)")
	default:
		tb.Skip("zktest does not have " + what)
	}
}

// Lacking skips a test that needs what this machine does not have, or this run does not
// ask for. The sentence says what that is, and how to get it. With MUST set, it fails.
func Lacking(tb testing.TB, sentence string) {
	tb.Helper()
	if must() {
		tb.Fatal(sentence)
	}
	lacking.Add(1)
	tb.Skip(sentence)
}

// Programs skips a test that needs programs which are not in PATH, as [Lacking] does.
func Programs(tb testing.TB, names ...string) {
	tb.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Lacking(tb, fmt.Sprintf("it needs %s: %v: install it", name, err))
		}
	}
}

// must tells whether what a test lacks is a failure.
func must() bool { return os.Getenv("MUST") != "" }

// Resuming skips a test whose session has to outlast a connection, where ZOOKEEPER_RUN
// asks for a Keeper, which resumes none.
func Resuming(tb testing.TB) {
	tb.Helper()
	if os.Getenv("ZOOKEEPER_RUN") == "keeper" {
		tb.Skip("ClickHouse Keeper resumes no session")
	}
}

// Path returns an absolute path, one level below the root, that no other test and no
// other run uses. It creates nothing.
func Path(tb testing.TB) string {
	tb.Helper()
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\ #`, r) || r < ' ' {
			return '-'
		}
		return r
	}, tb.Name())
	return "/" + name + "-" + rand.Text()[:10]
}

var (
	inMain  atomic.Bool  // Main runs, so that somebody will stop the shared clusters
	lacking atomic.Int64 // how many tests Lacking has skipped
	genuine sync.Map     // the names of the tests that Real has got a real server
	// sharedBy has the functions that give what tests share, by what ZOOKEEPER_RUN says.
	sharedBy sync.Map
)

// isReal tells whether tb, or a test that it is a part of, gets a real server by [Real].
func isReal(tb testing.TB) bool {
	tb.Helper()
	for name := tb.Name(); ; name = name[:strings.LastIndex(name, "/")] {
		if _, ok := genuine.Load(name); ok || !strings.Contains(name, "/") {
			return ok
		}
	}
}

// runOf is what ZOOKEEPER_RUN says for tb.
func runOf(tb testing.TB) string {
	tb.Helper()
	run := os.Getenv("ZOOKEEPER_RUN")
	if isReal(tb) && isEmbedded(run) {
		return "real"
	}
	return run
}

// shared finds what tests share. It does not take the context of the test that happens to
// come first: that test's end must not end the others' server.
func shared(run string) (*Cluster, error) {
	finds, _ := sharedBy.LoadOrStore(run, sync.OnceValues(func() (*Cluster, error) {
		return find(context.Background(), run)
	}))
	return finds.(func() (*Cluster, error))()
}

// closeShared stops what tests share.
func closeShared() error {
	var errs []error
	for run := range sharedBy.Range {
		if c, err := shared(run.(string)); err == nil { // else its tests have failed
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
