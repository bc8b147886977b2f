package seqnode

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/session"
)

// A stubConn has a queue of one.
type stubConn struct {
	session.Conn
	name string
}

func (c *stubConn) Create(path string, _ []byte, _ int32, _ []zk.ACL) (string, error) {
	c.name = path[len("/lock/"):] + "0000000000"
	return path + "0000000000", nil
}

func (c *stubConn) Children(string) ([]string, *zk.Stat, error) {
	return []string{c.name}, &zk.Stat{Pzxid: 1}, nil
}

func (c *stubConn) ChildrenW(string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	return []string{c.name}, &zk.Stat{Pzxid: 1}, make(chan zk.Event), nil
}

func (c *stubConn) GetW(string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	return nil, &zk.Stat{}, make(chan zk.Event), nil
}

func (c *stubConn) Delete(string, int32) error  { return nil }
func (c *stubConn) Sync(string) (string, error) { return "", nil }
func (c *stubConn) SessionID() int64            { return 1 }
func (c *stubConn) State() zk.State             { return zk.StateHasSession }

func stubQueue(t *testing.T) (*Queue, *session.Session) {
	t.Helper()
	s := session.Use(&stubConn{}, session.Config{
		Timeout: func() time.Duration { return time.Minute }, ServerTick: time.Second,
		InOrder: true,
	})
	t.Cleanup(s.Release)
	return &Queue{
		Dir: "/lock", Kind: "lock-", Kinds: []string{"lock-"},
		Rule: func(ahead []Name, _ Name) int { return len(ahead) - 1 },
		Log:  slog.New(slog.DiscardHandler),
		Keep: Keeping{Idle: 24 * time.Hour, Passes: 1},
	}, s
}

// The session can end between the two steps by which a znode is made known.
func TestACrowdKeepsNobodyWhoHasEnded(t *testing.T) {
	q, s := stubQueue(t)
	const text = "_c_x-lock-0000000000"
	name, _ := parse(text, q.Kinds)
	c := q.newCreation(s, nil)
	c.crowd, _ = q.joinCrowd(s)
	n := c.newNode("/lock/"+text, name, 1, 0)
	require.Len(t, c.crowd.nodes, 1)
	n.SessionEnded(session.ErrSessionEnded)
	<-n.removal.Done()
	c.crowd.add(n) // as late as can be
	require.Empty(t, c.crowd.nodes)
	c.crowd.came(q.Kind)
	require.True(t, c.crowd.unused)
}

// A timer would keep it, and all that it knows, for as long as it might have been idle.
func TestAPlaceThatIsLostKeepsNoTimer(t *testing.T) {
	q, s := stubQueue(t)
	share, err := q.EnterKept(t.Context(), s, Request{})
	require.NoError(t, err)
	share.Withdraw()
	st := share.stay
	st.place.mu.Lock()
	require.NotNil(t, st.idle)
	st.place.mu.Unlock()
	st.node.SessionEnded(errors.New("over"))
	<-st.run.Done()
	st.place.mu.Lock()
	defer st.place.mu.Unlock()
	require.Nil(t, st.place.held)
	require.Nil(t, st.idle)
}
