package hazards_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// The create succeeds, its answer is lost: the znode would live with the session, and
// everybody wait behind it (CURATOR-45, CURATOR-79). It is found by its uuid and taken
// over.
func TestHazardA1_1_CreateReplyLost(t *testing.T) {
	t.Parallel()
	zkserver.Resuming(t)
	lose := func(op wiretap.Op) func(*scene) <-chan struct{} {
		return func(s *scene) <-chan struct{} { return s.Tap.LoseReply(op, 1) }
	}
	for name, c := range map[string]struct {
		fault   func(s *scene) <-chan struct{}
		creates int
	}{
		"the reply to the create": {lose(wiretap.Create), 1},
		"the create itself": {func(s *scene) <-chan struct{} {
			return s.Tap.LoseRequest(wiretap.Create, 1)
		}, 2},
		"the list behind": {func(s *scene) <-chan struct{} {
			return s.Tap.NthReply(wiretap.GetChildren2, 1, wiretap.Cut)
		}, 1},
		"the search for the znode": {loseTheSearchToo(wiretap.Sync), 1},
		"the look at the znode":    {loseTheSearchToo(wiretap.GetData), 1},
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			s := newScene(t)
			lost := c.fault(s)
			s.acquired(t)
			locktest.Within(t, lost, "nothing was lost")
			creates := s.requests(wiretap.Create)
			require.Len(
				t, creates, c.creates,
				"a create is sent again only when the first has surely done nothing",
			)
			require.Equal(
				t, creates[0], creates[len(creates)-1], "always with the same uuid",
			)
			require.Len(t, s.other.Children(s.path), 1)
			s.holdsAlone(t)
		})
	}
}

// loseTheSearchToo loses the reply to the create, then that to an op of the search for
// the znode.
func loseTheSearchToo(op wiretap.Op) func(s *scene) <-chan struct{} {
	return func(s *scene) <-chan struct{} {
		lost := make(chan struct{})
		first := s.Tap.LoseReply(wiretap.Create, 1)
		s.Tap.OnReply(func(request, _ wiretap.Packet) wiretap.Verdict {
			if request.Op != op || !strings.HasPrefix(request.Path, s.path) {
				return wiretap.Pass
			}
			s.Tap.OnReply(nil)
			<-first
			close(lost)
			return wiretap.Cut
		})
		return lost
	}
}

// The answer is lost that there is no directory to create in.
func TestHazardA1_1_RefusalLost(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.delete(t, s.path)
		lost := s.Tap.LoseReply(wiretap.Create, 1)
		s.acquired(t)
		locktest.Within(t, lost, "nothing was lost")
		s.holdsAlone(t)
	})
}

// The caller leaves while the outcome of its create is unknown: whatever it was, no znode
// stays (CURATOR-45, "interrupts included"; etcd's Lock has the same hole).
func TestHazardA1_1_CancelledBeforeTheReply(t *testing.T) {
	t.Parallel()
	zkserver.Resuming(t)
	for name, then := range map[string]func(s *scene, release chan struct{}){
		"the reply comes late":  func(_ *scene, release chan struct{}) { close(release) },
		"the reply never comes": func(s *scene, _ chan struct{}) { s.Tap.Cut() },
		"nor does the next one": func(s *scene, _ chan struct{}) {
			s.Tap.LoseReply(wiretap.Sync, 1)
			s.Tap.Cut()
		},
	} {
		zkserver.Run(t, name, func(t *testing.T) {
			s := newScene(t)
			release := make(chan struct{})
			held := s.Tap.NthReply(wiretap.Create, 1, wiretap.Hold(release))
			ctx, cancel := context.WithCancelCause(s.ctx)
			done := locktest.Start(func() error { return s.lock.Acquire(ctx) })
			locktest.Within(t, held, "no create")
			require.Len(t, s.other.Children(s.path), 1)
			bored := errors.New("bored")
			cancel(bored)
			require.ErrorIs(
				t, locktest.Within(t, done, "Acquire waits for the reply"), bored,
			)
			session := s.Conn.SessionID()
			then(s, release)
			s.other.AwaitChildren(s.path, 0)
			require.Equal(
				t, session, s.Conn.SessionID(), "it is not the session's end that did it",
			)
			require.ErrorIs(t, s.lock.Release(s.ctx), recipes.ErrNotOwner)
			s.acquired(t)
			s.holdsAlone(t)
		})
	}
}

// The client is told that its session has expired, while the server still lists the old
// session's znode, with our uuid: it is about to vanish, and must not be taken over
// (CURATOR-498, CURATOR-604, CURATOR-620, CURATOR-696; kazoo).
func TestHazardA1_2_ZnodeOfADyingSession(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		done, stray, release := s.acquireOverADyingSession(s.ctx, t)
		close(release)
		require.NoError(t, locktest.Within(
			t, done, "Acquire waits for the end of a session that is not its own",
		))
		creates := s.requests(wiretap.Create)
		require.Len(t, creates, 2)
		require.Equal(t, creates[0], creates[1], "with the same uuid")
		require.Contains(t, s.requests(wiretap.Delete), stray, "it is ours to delete")
		require.NotEqual(t, stray, s.lock.LockPath(s.ctx))
		s.holdsAlone(t)
	})
}

// The same, and the caller leaves before the search: the znode of the old session must
// not stay either.
func TestHazardA1_2_CancelledWithAZnodeOfADyingSession(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		ctx, cancel := context.WithCancel(s.ctx)
		done, _, release := s.acquireOverADyingSession(ctx, t)
		cancel()
		require.ErrorIs(
			t, locktest.Within(t, done, "Acquire does not heed its ctx"),
			context.Canceled,
		)
		close(release)
		s.other.AwaitChildren(s.path, 0)
	})
}

// acquireOverADyingSession loses the reply to a create and tells the client that its
// session has expired; it is held up in asking for a new one until release is closed.
func (s *scene) acquireOverADyingSession(
	ctx context.Context, t *testing.T,
) (done <-chan error, stray string, release chan struct{}) {
	t.Helper()
	old := s.Conn.SessionID()
	lost := s.Tap.LoseReply(wiretap.Create, 1)
	s.Tap.NthRequest(wiretap.Connect, 1, wiretap.Answer(locktest.SessionExpired))
	release = make(chan struct{})
	// the second one
	dialled := s.Tap.NthRequest(wiretap.Connect, 1, wiretap.Hold(release))
	done = locktest.Start(func() error { return s.lock.Acquire(ctx) })
	locktest.Within(t, lost, "no create")
	locktest.Within(t, dialled, "the client does not ask for a new session")
	stray = s.path + "/" + s.other.AwaitChildren(s.path, 1)[0]
	_, stat, err := s.other.Conn.Get(stray)
	require.NoError(t, err)
	require.Equal(t, old, stat.EphemeralOwner)
	return done, stray, release
}

// Of several znodes with our uuid one is held and the others are deleted (CURATOR-45).
func TestHazardA1_2_StraysOfTheSameUUID(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		s.Tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
			if creates := s.requests(wiretap.Create); p.Op == wiretap.GetChildren2 &&
				len(creates) > 0 {
				s.Tap.OnRequest(nil)
				_, err := s.other.Conn.Create(
					creates[0], nil, zk.FlagEphemeral|zk.FlagSequence,
					zk.WorldACL(zk.PermAll),
				)
				if err != nil {
					t.Error(err)
				}
			}
			return wiretap.Pass
		})
		s.acquired(t)
		s.holdsAlone(t)
	})
}

// A call that the client has queued runs in the next session without a word: the znode is
// that session's.
func TestHazardE4_CreateRunsInTheNextSession(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		conn := newGatedConn(s.Conn)
		s.use(t, conn)
		done := s.acquire()
		locktest.Within(t, conn.arrived, "no create")
		s.tellExpired(t)
		close(conn.proceed)
		require.NoError(t, locktest.Within(t, done, "the lock waits for its own znode"))
		require.Len(t, s.requests(wiretap.Create), 1, "it is recognised")
		s.holdsAlone(t)
	})
}

// The same by way of the client's own queue, in which the create is while the client
// learns that its session has expired.
func TestHazardE4_CreateInTheClientsQueue(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		conn := newGatedConn(s.Conn)
		s.use(t, conn)
		done := s.acquire()
		locktest.Within(t, conn.arrived, "no create")
		release := make(chan struct{})
		asked := s.Tap.NthRequest(wiretap.Connect, 1, wiretap.Hold(release))
		told := s.Tap.NthReply(wiretap.Connect, 1,
			wiretap.Answer(locktest.SessionExpired))
		s.Tap.Cut()
		locktest.Within(t, asked, "the client does not ask for its session")
		close(conn.proceed)
		// the answer and another handshake are still to come: time enough to put the
		// create in the queue
		close(release)
		require.NoError(t, locktest.Within(t, done, "the lock waits for its own znode"))
		locktest.Within(t, told, "the session did not expire")
		require.Len(t, s.requests(wiretap.Create), 1, "it is recognised")
		s.holdsAlone(t)
	})
}

// A client that has dialled all its servers in vain fails the calls that it has queued,
// with ErrNoServer: nothing was sent.
func TestHazardE11_CreateFlushedFromTheClientsQueue(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		conn := newGatedConn(s.Conn)
		s.use(t, conn)
		done := s.acquire()
		locktest.Within(t, conn.arrived, "no create")
		s.Tap.Refuse(true)
		s.Tap.Cut()
		locktest.Eventually(
			t, func() bool { return s.Conn.State() != zk.StateHasSession },
			"the client does not notice",
		)
		close(conn.proceed)
		require.ErrorIs(
			t, locktest.Within(t, conn.outcome, "the client does not flush its queue"),
			zk.ErrNoServer,
		)
		s.Tap.Refuse(false)
		require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
		require.Len(t, s.requests(wiretap.Create), 1)
		s.holdsAlone(t)
	})
}

// A gatedConn stops the first create just before it is handed to the client.
type gatedConn struct {
	*zk.Conn
	once    sync.Once
	arrived chan struct{} // closed when the create is there
	proceed chan struct{} // to be closed by the test
	outcome chan error    // the client's answer to that create
}

func (c *gatedConn) Create(
	path string, data []byte, flags int32, acl []zk.ACL,
) (string, error) {
	first := false
	c.once.Do(func() {
		first = true
		close(c.arrived)
		<-c.proceed
	})
	created, err := c.Conn.Create(path, data, flags, acl)
	if first {
		c.outcome <- err
	}
	return created, err
}

func newGatedConn(conn *zk.Conn) *gatedConn {
	return &gatedConn{
		Conn: conn, arrived: make(chan struct{}), proceed: make(chan struct{}),
		outcome: make(chan error, 1),
	}
}
