// Package queuetest is what the tests of the queue share. They run on go-zookeeper's
// client against a simulated ensemble, in virtual time.
package queuetest

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/seqnode"
	"github.com/zkrecipes/recipes/internal/zkconn"
	"github.com/zkrecipes/recipes/internal/znode"
	"github.com/zkrecipes/recipes/zktest"
)

// The times of the ensemble and of its clients, and the queue that they use.
const (
	Tick    = 2 * time.Second
	Timeout = 12 * time.Second
	Dir     = "/lock"
	// Patience is far beyond what anything here takes, and below the shortest safety
	// poll: who gets on by that alone is found out.
	Patience = 20 * time.Second
)

// Anyone may do anything.
var Anyone = zk.WorldACL(zk.PermAll)

type mute struct{}

func (mute) Printf(string, ...any) {}

// A Peer is a process with a connection of its own.
type Peer struct {
	*zk.Conn
	T    *testing.T
	S    *zkconn.Conn
	Link *zktest.Link
}

// Bubble runs a test in virtual time. Each wait in it must be bounded: the client's pings
// keep the time running for ever.
func Bubble(t *testing.T, f func(t *testing.T, cluster *zktest.Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, zktest.Start(t, zktest.WithTick(Tick), zktest.WithShuffle()))
	})
}

// Bounded is the ctx of whoever might wait for ever.
func Bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// NewPeer connects a process, and closes its connection at the end of the test.
func NewPeer(t *testing.T, cluster *zktest.Cluster, name string) *Peer {
	t.Helper()
	return newPeer(t, cluster, name, func() time.Duration { return Timeout })
}

// NewBarePeer is NewPeer for a process that does not know its session timeout.
func NewBarePeer(t *testing.T, cluster *zktest.Cluster, name string) *Peer {
	t.Helper()
	return newPeer(t, cluster, name, func() time.Duration { return 0 })
}

func newPeer(
	t *testing.T, cluster *zktest.Cluster, name string, known func() time.Duration,
) *Peer {
	t.Helper()
	p := &Peer{T: t, Link: cluster.Link(name)}
	var err error
	p.Conn, _, err = zk.Connect([]string{"x"}, Timeout,
		zk.WithDialer(p.Link.Dial), zk.WithHostProvider(cluster.HostProvider()),
		zk.WithLogger(mute{}), zk.WithLogInfo(false))
	require.NoError(t, err)
	p.S = zkconn.Use(p.Conn, zkconn.Config{
		Timeout: known, ServerTick: Tick, Plain: true,
		InOrder: true,
	})
	t.Cleanup(func() {
		p.Link.Heal()
		time.Sleep(Timeout)
		// A connection that breaks under the client's last request can answer that twice,
		// and hang.
		p.Link.Cut()
		time.Sleep(Timeout)
		p.Close()
		p.S.Release()
		time.Sleep(2 * Timeout) // what goes on in the background ends with the session
	})
	return p
}

// Queue is a mutex.
func Queue() *seqnode.Queue {
	return &seqnode.Queue{
		Spec: znode.Spec{
			Dir: Dir, Kind: "lock-", ACL: Anyone, Log: slog.New(slog.DiscardHandler),
		},
		Kinds:    []string{"lock-"},
		Excludes: func(_, _ seqname.Name) bool { return true },
	}
}

// Within fails the test where c has nothing for it, and is not closed, in time.
func Within[T any](t *testing.T, d time.Duration, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(d):
		require.FailNow(t, what)
	}
	return v
}

// Occupy makes a znode in the queue as another library would, and returns it.
func (p *Peer) Occupy() (path string) {
	p.T.Helper()
	return p.OccupyAs(Queue().Kind)
}

// OccupyAs is Occupy with a znode of another kind.
func (p *Peer) OccupyAs(kind string) (path string) {
	p.T.Helper()
	_, err := p.Create(Dir, nil, zk.FlagPersistent, Anyone)
	if !errors.Is(err, zk.ErrNodeExists) {
		require.NoError(p.T, err)
	}
	path, err = p.Create(Dir+"/"+kind, nil, zk.FlagEphemeral|zk.FlagSequence, Anyone)
	require.NoError(p.T, err)
	return path
}

// Remove deletes a znode.
func (p *Peer) Remove(path string) {
	p.T.Helper()
	require.NoError(p.T, p.Delete(path, -1))
}

// Nodes returns the paths of what is in the directory.
func (p *Peer) Nodes() []string {
	p.T.Helper()
	members, err := Queue().Observed().Members(Bounded(p.T), p.S)
	require.NoError(p.T, err)
	paths := []string{}
	for _, m := range members {
		paths = append(paths, Queue().Path(m))
	}
	return paths
}

// Czxid returns the zxid that created a znode.
func (p *Peer) Czxid(path string) int64 {
	p.T.Helper()
	_, stat, err := p.Get(path)
	require.NoError(p.T, err)
	return stat.Czxid
}
