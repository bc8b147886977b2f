package interop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// An election is a kind of it, as candidates are made in Go and in Java.
type election struct {
	name, kind string // the latter in Java
	stand      func(t *testing.T, p *goPeer, path, id string) *goCandidate
}

var elections = []election{
	{"leader selector", "leaderselector", standBySelector},
	{"leader latch", "leaderlatch", standByLatch},
}

// eachElection runs a test for both kinds, at the same time.
func eachElection(t *testing.T, f func(t *testing.T, e election)) {
	t.Parallel()
	for _, e := range elections {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			f(t, e)
		})
	}
}

// A candidate stands in an election, in Go or in Java. It leads until it leaves.
type candidate interface {
	elected() <-chan error // tells when it leads
	leave()
	leads() bool
	leader() string       // as it sees it: its id, and whether it leads
	candidates() []string // likewise, in order
}

// A view is what both kinds tell of an election.
type view interface {
	Participants(ctx context.Context) ([]recipes.Participant, error)
	Leader(ctx context.Context) (recipes.Participant, bool, error)
}

// A goCandidate is one in Go.
type goCandidate struct {
	t     *testing.T
	view  view
	led   <-chan error
	terms chan *recipes.Hold // has the term once it leads
	term  *recipes.Hold
	end   func() error
}

func (c *goCandidate) elected() <-chan error { return c.led }

func (c *goCandidate) leave() {
	c.t.Helper()
	require.NoError(c.t, c.end())
}

// hold returns the term of one that leads.
func (c *goCandidate) hold() *recipes.Hold {
	if c.term == nil {
		c.term = locktest.Within(c.t, c.terms, "it does not lead")
	}
	return c.term
}

func (c *goCandidate) leads() bool { return len(c.terms) > 0 || c.term != nil }

func (c *goCandidate) leader() string {
	c.t.Helper()
	p, ok, err := c.view.Leader(c.t.Context())
	require.NoError(c.t, err)
	require.True(c.t, ok)
	return told(p)
}

func (c *goCandidate) candidates() (all []string) {
	c.t.Helper()
	participants, err := c.view.Participants(c.t.Context())
	require.NoError(c.t, err)
	for _, p := range participants {
		all = append(all, told(p))
	}
	return all
}

// told is a participant as java/Commands.java tells it.
func told(p recipes.Participant) string { return fmt.Sprintf("%s=%v", p.Data, p.Holding) }

var errTermOver = errors.New("the term is over")

func standBySelector(t *testing.T, p *goPeer, path, id string) *goCandidate {
	t.Helper()
	s, err := recipes.NewLeaderSelector(p.Client, path, recipes.WithData([]byte(id)))
	require.NoError(t, err)
	led, over := make(chan error, 1), make(chan struct{})
	c := &goCandidate{t: t, view: s, led: led, terms: make(chan *recipes.Hold, 1)}
	ran := locktest.Start(func() error {
		return s.Run(t.Context(), func(ctx context.Context, term *recipes.Hold) error {
			c.terms <- term
			led <- nil
			select {
			case <-over:
			case <-ctx.Done():
			}
			return errTermOver
		})
	})
	c.end = func() error {
		close(over)
		err := locktest.Within(t, ran, "Run does not return")
		if errors.Is(err, errTermOver) {
			return nil
		}
		return err
	}
	return c
}

func standByLatch(t *testing.T, p *goPeer, path, id string) *goCandidate {
	t.Helper()
	l, err := recipes.NewLeaderLatch(p.Client, path, recipes.WithData([]byte(id)))
	require.NoError(t, err)
	c := &goCandidate{t: t, view: l, terms: make(chan *recipes.Hold, 1)}
	c.led = locktest.Start(func() error {
		term, err := l.Await(t.Context())
		if err == nil {
			c.terms <- term
		}
		return err
	})
	c.end = func() error { return l.Close(t.Context()) }
	return c
}

// A javaCandidate is one in Java.
type javaCandidate struct {
	peer *javaPeer
	name string
	led  <-chan error
}

func (e election) standInJava(p *javaPeer, path, id string) *javaCandidate {
	p.t.Helper()
	c := &javaCandidate{peer: p, name: p.make(e.kind, path, id)}
	stood := p.jvm.ask(newName("thread"), "stand", c.name)
	c.led = locktest.Start(func() error { return (<-stood).err })
	return c
}

func (c *javaCandidate) elected() <-chan error { return c.led }

func (c *javaCandidate) leave() { c.peer.t.Helper(); c.peer.do("leave", c.name) }

func (c *javaCandidate) leads() bool {
	c.peer.t.Helper()
	return c.peer.do("leads", c.name)[0] == "true"
}

func (c *javaCandidate) leader() string {
	c.peer.t.Helper()
	return c.peer.do("leader", c.name)[0]
}

func (c *javaCandidate) candidates() []string {
	c.peer.t.Helper()
	return c.peer.do("candidates", c.name)
}

// Both sides lead in the order in which they stood, tell the same candidates and the same
// leader, and read each other's ids.
func TestOneElection(t *testing.T) {
	eachElection(t, func(t *testing.T, e election) {
		look, path := newGo(t), zkserver.Path(t)
		inGo, java := newGo(t), newJava(t)
		leaders := leadersOf(t, newGo(t), e, path)
		require.Empty(t, locktest.Within(t, leaders, "nobody leads at first"))
		var queue []candidate
		for i, id := range []string{"java-1", "go-1", "go-2", "java-2", "ĝo-3"} {
			if id[0] == 'j' {
				queue = append(queue, e.standInJava(java, path, id))
			} else {
				queue = append(queue, e.stand(t, inGo, path, id))
			}
			look.awaitChildren(path, i+1)
		}
		want := []string{
			"java-1=true", "go-1=false", "go-2=false", "java-2=false", "ĝo-3=false",
		}
		for i, c := range queue {
			require.NoError(t, locktest.Within(t, c.elected(), "it does not lead"))
			leader := want[0]
			require.Equal(t, leader, locktest.Within(t, leaders, "no leader is told"))
			for _, other := range queue[i:] {
				require.Equal(t, want, other.candidates())
				require.Equal(t, leader, other.leader())
				require.Equal(t, other == c, other.leads())
			}
			if want = want[1:]; len(want) > 0 {
				want[0] = want[0][:len(want[0])-len("false")] + "true"
			}
			c.leave()
			look.awaitChildren(path, len(want))
		}
		require.Equal(t, "", locktest.Within(t, leaders, "that nobody leads"))
	})
}

// leadersOf tells what Go's Leaders yields, as told, and "" while nobody leads.
func leadersOf(t *testing.T, p *goPeer, e election, path string) <-chan string {
	t.Helper()
	l, err := recipes.NewLeaderLatch(p.Client, path)
	require.NoError(t, err)
	over := l.Leaders
	if e.kind == "leaderselector" {
		s, err := recipes.NewLeaderSelector(p.Client, path)
		require.NoError(t, err)
		over = s.Leaders
	}
	seen := make(chan string, 100)
	go func() {
		for leader, err := range over(t.Context()) {
			switch {
			case err != nil:
				seen <- err.Error()
			case leader.Node == "":
				seen <- ""
			default:
				seen <- told(leader)
			}
		}
	}()
	return seen
}

// A leader that is killed, or cut off, is followed by the next of the other side once its
// session is over. Go's has been told before.
func TestALeaderDies(t *testing.T) {
	eachElection(t, func(t *testing.T, e election) {
		look, path := newGo(t), zkserver.Path(t)
		process := ownJVM(t)
		dying := e.standInJava(newJavaIn(t, process, mortal), path, "java-1")
		require.NoError(t, locktest.Within(t, dying.elected(), "Java does not lead"))
		cut := newGoAt(t, serversOf(t), mortal)
		second := e.stand(t, cut, path, "go-1")
		look.awaitChildren(path, 2)
		third := e.standInJava(newJava(t), path, "java-2")
		look.awaitChildren(path, 3)
		fourth := e.stand(t, newGo(t), path, "go-2")
		look.awaitChildren(path, 4)

		process.kill(t)
		require.NoError(t, afterDeath(t, second.elected(), "Go does not lead"))
		require.Equal(t, "go-1=true", third.leader())
		term := second.hold()
		require.NoError(t, term.Err())

		cut.tap.Partition()
		require.NoError(t, afterDeath(t, third.elected(), "Java does not lead"))
		require.ErrorIs(t, term.Err(), recipes.ErrLockLost)
		require.Equal(t, "java-2=true", fourth.leader())
		require.False(t, fourth.leads())
		czxid := look.eldest(path)
		require.Greater(t, czxid, term.FencingToken(), "it compares with Java's znode")
		cut.tap.Heal()

		third.leave()
		require.NoError(t, locktest.Within(t, fourth.elected(), "Go does not lead"))
		require.Greater(t, fourth.hold().FencingToken(), czxid)
		locktest.Eventually(t, func() bool {
			return fourth.leader() == "go-2=true"
		}, "the leader is another")
		fourth.leave()
	})
}
