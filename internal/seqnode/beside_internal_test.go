package seqnode

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/session"
)

// A besideConn has a queue of a writer, which is number 0, and whoever is beside it.
type besideConn struct {
	stubConn
	mu    sync.Mutex
	names []string
}

func (c *besideConn) Create(
	path string, _ []byte, flags int32, _ []zk.ACL,
) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if flags&zk.FlagSequence != 0 {
		path += fmt.Sprintf("%010d", len(c.names))
	}
	c.names = append(c.names, path[len("/lock/"):])
	return path, nil
}

func (c *besideConn) Children(string) ([]string, *zk.Stat, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.names), &zk.Stat{}, nil
}

// Whoever lists the queue once a writer has ended goes past that one, and would overlook
// a reader that turned up beside it after that.
func TestNobodyGetsInBesideAWriterThatIsEnding(t *testing.T) {
	s := session.Use(&besideConn{}, session.Config{
		Timeout: func() time.Duration { return time.Minute }, ServerTick: time.Second,
		InOrder: true,
	})
	t.Cleanup(s.Release)
	queue := func(kind string) *Queue {
		return &Queue{
			Dir: "/lock", Kind: kind, Kinds: []string{"R-", "W-"},
			Rule: func([]Name, Name) int { return -1 },
			Log:  slog.New(slog.DiscardHandler),
		}
	}
	writer, err := queue("W-").Enter(t.Context(), s, Request{})
	require.NoError(t, err)
	ending, goOn := make(chan struct{}), make(chan struct{})
	writer.cancelExpiry = func() { close(ending); <-goOn }
	go writer.Withdraw()
	<-ending
	reading := session.Start(s, func() (*Node, error) {
		return queue("R-").EnterBeside(t.Context(), s, writer, Request{})
	})
	select {
	case <-reading.Done():
	case <-time.After(100 * time.Millisecond): // it waits to know
	}
	close(goOn)
	reader, err := reading.Wait(t.Context())
	require.NoError(t, err)
	reader.Withdraw()
	require.False(t, strings.HasSuffix(reader.Path, writer.name.number()), reader.Path)
}
