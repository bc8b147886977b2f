package interop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

const (
	// The timeout of a session that shall last, however slow the machine is.
	steady = 30 * time.Second
	// The timeout of one that the server is to end by itself. Until then it outlasts a
	// machine that stands still for 5 s, a third of it after the last ping.
	mortal = 10 * time.Second
)

// afterDeath returns what arrives on ch once a mortal session has ended.
func afterDeath[T any](tb testing.TB, ch <-chan T, what string) (v T) {
	tb.Helper()
	select {
	case v = <-ch:
	case <-time.After(mortal + 2*locktest.Patience):
		tb.Fatalf("timed out: %s", what)
	}
	return v
}

// A goPeer is a Go process's ZooKeeper session.
type goPeer struct {
	*recipes.Client
	t   testing.TB
	tap *wiretap.Tap
}

func newGo(tb testing.TB) *goPeer {
	tb.Helper()
	return newGoAt(tb, serversOf(tb), steady)
}

func newGoAt(tb testing.TB, servers string, timeout time.Duration) *goPeer {
	tb.Helper()
	tap := wiretap.New(nil)
	ctx, cancel := context.WithTimeout(tb.Context(), locktest.Patience)
	defer cancel()
	client, err := recipes.Connect(ctx, servers, timeout, recipes.WithDialer(tap.Dial))
	require.NoError(tb, err)
	p := &goPeer{Client: client, t: tb, tap: tap}
	tb.Cleanup(func() {
		tap.Heal()
		client.Close()
	})
	return p
}

// awaitSession waits until the client is connected, and an answer has shown it.
func (p *goPeer) awaitSession() {
	p.t.Helper()
	locktest.Eventually(p.t, func() bool {
		_, _, err := p.Get("/")
		return err == nil
	}, "no session")
}

// children is [locktest.Children] through the peer's connection.
func (p *goPeer) children(path string) []string {
	p.t.Helper()
	return locktest.Children(p.t, p.Client, path)
}

// awaitChildren is [locktest.AwaitChildren] through the peer's connection.
func (p *goPeer) awaitChildren(path string, n int) []string {
	p.t.Helper()
	return locktest.AwaitChildren(p.t, p.Client, path, n)
}

// eldest returns the czxid of the eldest child of a directory.
func (p *goPeer) eldest(path string) (czxid int64) {
	p.t.Helper()
	for _, child := range p.children(path) {
		_, stat, err := p.Get(path + "/" + child)
		if errors.Is(err, zk.ErrNoNode) {
			continue
		}
		require.NoError(p.t, err)
		if czxid == 0 || stat.Czxid < czxid {
			czxid = stat.Czxid
		}
	}
	return czxid
}

// deleteAll deletes a znode and all below it; others may be at it, too.
func (p *goPeer) deleteAll(path string) {
	p.t.Helper()
	for _, child := range p.children(path) {
		p.deleteAll(path + "/" + child)
	}
	if err := p.Delete(path, -1); !errors.Is(err, zk.ErrNoNode) {
		require.NoError(p.t, err)
	}
}

// createNumber makes a znode with the number 0 in it.
func (p *goPeer) createNumber(path string) {
	p.t.Helper()
	_, err := p.Create(path, []byte("0"), zk.FlagPersistent, zk.WorldACL(zk.PermAll))
	require.NoError(p.t, err)
}

// number reads a znode with a number in it.
func (p *goPeer) number(path string) (int, error) {
	data, _, err := p.Get(path)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(data))
}

// add is Shared.increment's work under a lock.
func (p *goPeer) add(paths ...string) error {
	for _, path := range paths {
		n, err := p.number(path)
		if err != nil {
			return err
		}
		if _, err := p.Set(path, []byte(strconv.Itoa(n+1)), -1); err != nil {
			return err
		}
	}
	return nil
}

// equal is Shared.compare's work under a lock.
func (p *goPeer) equal(paths []string) error {
	var seen []int
	for _, path := range paths {
		n, err := p.number(path)
		if err != nil {
			return err
		}
		seen = append(seen, n)
	}
	if slices.Min(seen) != slices.Max(seen) {
		return fmt.Errorf("a reader beside a writer has read %v", seen)
	}
	return nil
}

// A javaPeer is a Curator client, with its ZooKeeper session, in a Java process.
type javaPeer struct {
	t       testing.TB
	jvm     *jvm
	name    string
	session int64
}

// names keeps the names of what is made in Java apart.
var names atomic.Int64

func newName(kind string) string { return fmt.Sprintf("%s-%d", kind, names.Add(1)) }

func newJava(tb testing.TB) *javaPeer {
	tb.Helper()
	return newJavaIn(tb, sharedJVM(tb), steady)
}

func newJavaIn(
	tb testing.TB, j *jvm, timeout time.Duration, namespace ...string,
) *javaPeer {
	tb.Helper()
	return newJavaAt(tb, j, serversOf(tb), timeout, namespace...)
}

func newJavaAt(
	tb testing.TB, j *jvm, servers string, timeout time.Duration, namespace ...string,
) *javaPeer {
	tb.Helper()
	p := &javaPeer{t: tb, jvm: j, name: newName("client")}
	millis := strconv.FormatInt(timeout.Milliseconds(), 10)
	opened := p.do("open", append([]string{p.name, servers, millis}, namespace...)...)
	session, err := strconv.ParseInt(opened[0], 10, 64)
	require.NoError(tb, err)
	p.session = session
	// fails where the process was killed
	tb.Cleanup(func() {
		locktest.Within(tb, j.ask(p.name, "close", p.name), "Java's close")
	})
	return p
}

// do is jvm.do by a thread of the client's own.
func (p *javaPeer) do(verb string, arguments ...string) []string {
	p.t.Helper()
	return p.jvm.do(p.t, p.name, verb, arguments...)
}

// make makes a recipe of a kind and returns its name.
func (p *javaPeer) make(kind string, arguments ...string) string {
	p.t.Helper()
	name := newName(kind)
	p.do("make", append([]string{name, kind, p.name}, arguments...)...)
	return name
}

// expire has the server end the session.
func (p *javaPeer) expire() {
	p.t.Helper()
	zkserver.Resuming(p.t) // another client resumes the session, and closes it
	p.do("expire", p.name)
}
