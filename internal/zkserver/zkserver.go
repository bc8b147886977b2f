// Package zkserver gives tests and examples a real ZooKeeper: one server or an ensemble,
// that can be frozen, killed and restarted.
//
// Where a server comes from, in this order:
//
//  1. ZOOKEEPER_SERVERS ("host:port,host:port"), for [Shared] and [Find] only: what
//     others use too is not ours to kill.
//  2. A container engine, through testcontainers-go, if one answers and has, or can pull,
//     the image: ZOOKEEPER_IMAGE, or the official image of a pinned version. What needs
//     testcontainers-go is a program in a module of its own, ./containers. This package
//     builds and starts it once per process. It needs the sources for that, and cannot
//     find them if it is built with -trimpath.
//  3. A local installation, run as child processes on free ports: the release in
//     ZOOKEEPER_HOME, or Debian's package libzookeeper-java. Java is that of JAVA_HOME,
//     or the one in PATH.
//
// ZOOKEEPER_RUN=container or ZOOKEEPER_RUN=local leaves only that one of the last two. A
// test that needs a server and finds none fails with a sentence that says how to get one;
// it is skipped only under -short.
//
// ZOOKEEPER_RUN=embedded takes none of these but zktest, which must pass the same tests;
// ZOOKEEPER_RUN=keeper takes zktest as ClickHouse Keeper. Those that depend on what only
// the real one has say so with [Real], those that need sessions to be resumed with
// [Resuming], and are skipped.
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
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Start gives tb a cluster of its own, which is gone when tb ends: one server, unless an
// option says otherwise.
func Start(tb testing.TB, opts ...Option) *Cluster {
	tb.Helper()
	c, err := Open(tb.Context(), opts...)
	mustHave(tb, err)
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Shared gives the cluster that all tests of this binary share, each on its own [Path];
// it is started by the first test that asks, and stopped by [Main]. Nobody may freeze or
// kill it.
func Shared(tb testing.TB) *Cluster {
	tb.Helper()
	if !inMain.Load() {
		tb.Fatal("zkserver: Shared needs a TestMain with os.Exit(zkserver.Main(m)): " +
			"who else would stop the server?")
	}
	c, err := findShared()
	mustHave(tb, err)
	return c
}

// Main runs the tests of m and stops the shared cluster, if one of them started it. It
// returns the exit code.
func Main(m *testing.M) int {
	inMain.Store(true)
	code := m.Run()
	if c := shared.Load(); c != nil {
		if err := c.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return max(code, 1)
		}
	}
	return code
}

// Real skips a test that depends on what zktest does not have, where ZOOKEEPER_RUN asks
// for zktest.
func Real(tb testing.TB, what string) {
	tb.Helper()
	if run := os.Getenv("ZOOKEEPER_RUN"); run == "embedded" || run == "keeper" {
		tb.Skip("zktest does not have " + what)
	}
}

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
	// inMain: Main runs, so that somebody will stop the shared cluster.
	inMain atomic.Bool
	shared atomic.Pointer[Cluster] // set once findShared has succeeded
)

// findShared does not take the context of the test that happens to come first: that
// test's end must not end the others' server.
var findShared = sync.OnceValues(func() (*Cluster, error) {
	c, err := Find(context.Background())
	if err == nil {
		shared.Store(c)
	}
	return c, err
})

func mustHave(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errNone) && testing.Short():
		tb.Skip(err)
	default:
		tb.Fatal(err)
	}
}
