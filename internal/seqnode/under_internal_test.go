package seqnode

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A besideConn has a queue of a writer, which is number 0, and whoever is beside it.
type besideConn struct {
	stubconn.Conn
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

// An endableConn ends a writer at one of the looks at its session.
type endableConn struct {
	besideConn
	writer *znode.Node // nil: not yet
	left   int         // how many looks are left until then
}

func (c *endableConn) SessionID() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writer != nil {
		if c.left--; c.left == 0 {
			go c.writer.Withdraw()
			// It waits for the cohort, if that is what asks.
			for i := 0; i < 1000 && !c.writer.HasEnded(); i++ {
				runtime.Gosched()
			}
		}
	}
	return 1
}

// A writer can end at any time: when EnterUnder returns it has not, or the reader stands
// in the queue like anybody.
func TestAWriterThatEndsMeanwhile(t *testing.T) {
	for at, ended := 1, true; ended; at++ {
		synctest.Test(t, func(t *testing.T) { // no tick looks meanwhile
			conn := &endableConn{left: at}
			s := stubconn.Use(t, conn)
			q := func(kind string) *Queue {
				spec := stubconn.Spec()
				spec.Kind = kind
				return &Queue{
					Spec: spec, Kinds: []string{"R-", "W-"},
					Excludes: func(_, _ seqname.Name) bool { return false },
				}
			}
			writer, err := q("W-").Enter(t.Context(), s, Request{})
			require.NoError(t, err)
			synctest.Wait()
			conn.mu.Lock()
			conn.writer = writer
			conn.mu.Unlock()
			reader, err := q("R-").EnterUnder(t.Context(), s, writer, Request{})
			require.NoError(t, err)
			ended = writer.HasEnded()
			number := writer.Hooks().(*Member).self.Name().Number()
			require.Equal(t, !ended, strings.HasSuffix(reader.Path, number), "%d", at)
			reader.Withdraw()
			writer.Withdraw()
		})
	}
}
