package registration_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
)

const path = "/services/api"

// newNode returns a PersistentNode at path, which is closed when the test ends.
func newNode(
	t *testing.T, conn recipes.Conn, data string, opts ...recipes.Option,
) *recipes.PersistentNode {
	t.Helper()
	n, err := recipes.NewPersistentNode(conn, path, []byte(data), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { //nolint:contextcheck // t's is done
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = n.Close(ctx)
	})
	return n
}

// kept returns a PersistentNode whose znode is there, and its hold.
func kept(
	t *testing.T, conn recipes.Conn, data string, opts ...recipes.Option,
) (*recipes.PersistentNode, *recipes.Hold) {
	t.Helper()
	n := newNode(t, conn, data, opts...)
	require.NoError(t, n.Await(t.Context()))
	hold := n.Hold()
	require.NotNil(t, hold)
	return n, hold
}

// read returns what stands at path: nil where there is nothing.
func read(t *testing.T, conn recipes.Conn) ([]byte, *zk.Stat) {
	t.Helper()
	data, stat, err := conn.Get(path)
	if err != nil {
		require.ErrorIs(t, err, zk.ErrNoNode)
		return nil, nil
	}
	return data, stat
}

// requireOwn requires that the znode is of that client's session, with those data.
func requireOwn(t *testing.T, seen recipes.Conn, owner recipes.Conn, data string) {
	t.Helper()
	got, stat := read(t, seen)
	require.NotNil(t, stat, "there is no znode")
	require.Equal(t, owner.SessionID(), stat.EphemeralOwner)
	require.Equal(t, data, string(got))
}

// requireNone requires that there is no znode.
func requireNone(t *testing.T, seen recipes.Conn) {
	t.Helper()
	_, stat := read(t, seen)
	require.Nil(t, stat)
}

// create makes another's ephemeral znode at path.
func create(t *testing.T, conn recipes.Conn, data string) {
	t.Helper()
	_, err := conn.Create(path, []byte(data), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
}

// mkdir makes the parent, so that the costs are those of the znode alone.
func mkdir(t *testing.T, conn recipes.Conn, dirs ...string) {
	t.Helper()
	for _, dir := range append([]string{"/services"}, dirs...) {
		_, err := conn.Create(dir, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
	}
}

// tapped returns a client whose requests are counted.
func tapped(t *testing.T, b *locktest.Bubble) (*recipes.Client, *wiretap.Tap) {
	t.Helper()
	return locktest.ConnectTapped(t, b.Cluster.Link("tapped"), b.Cluster.Names()[0],
		10*time.Second)
}

// asked returns what was asked of path and its parent, in order.
func asked(tap *wiretap.Tap) (ops []wiretap.Op) {
	for _, request := range locktest.RequestsBelow(tap, "/services") {
		ops = append(ops, request.Op)
	}
	return ops
}

// A journal is a log that can be read.
type journal struct {
	mu  sync.Mutex
	log bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.log.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.log.String()
}

func (j *journal) option() recipes.Option {
	return recipes.WithLogger(slog.New(slog.NewTextHandler(j, nil)))
}

func text(members []recipes.Member) (all string) {
	for _, m := range members {
		all += fmt.Sprintf("%s=%s ", m.ID, m.Data)
	}
	return all
}

// sessionText is a session as errors have it.
func sessionText(id int64) string { return fmt.Sprintf("%#x", uint64(id)) }

// told returns the events of a registration, each with the number of its acquisition,
// counted from 1.
func told(r *locktest.Recorder) (all []string) {
	numbers := map[uint64]int{}
	for _, e := range r.All() {
		if numbers[e.ID] == 0 {
			numbers[e.ID] = len(numbers) + 1
		}
		if e.Recipe != "persistent node" || e.Path != path {
			all = append(all, "of another")
		}
		all = append(all, fmt.Sprint(numbers[e.ID], " ", e.Kind))
	}
	return all
}
