package seqnode

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// A countingConn counts the reads of its queue's directory.
type countingConn struct {
	besideConn
	reads atomic.Int32
}

func (c *countingConn) GetW(path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	if path == stubconn.Spec().Dir {
		c.reads.Add(1)
	}
	return c.Conn.GetW(path)
}

func excluding(kind string) *Queue {
	return &Queue{
		Spec: stubconn.Spec(), Kinds: []string{kind},
		Excludes: func(_, _ seqname.Name) bool { return true },
	}
}

// A list goes with a create if it is likely to decide: not behind another of this
// process, nor if the next number will do.
func TestWhatIsSentWithACreate(t *testing.T) {
	for name, tells := range map[string]bool{
		"of a connection that tells of creates": true, "of another": false,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, zxid := &countingConn{}, int64(0)
				cfg := zkconn.Config{
					Timeout:    func() time.Duration { return time.Minute },
					ServerTick: time.Second, InOrder: true,
				}
				if tells {
					cfg.CreatedAt = func(string) int64 { zxid++; return zxid }
				}
				s := zkconn.Use(conn, cfg)
				defer s.Release()
				q := excluding("lock-")
				first := q.newWaiter(s, Request{}).Member
				require.NoError(t, join(t, first))
				require.NotNil(t, first.firstList)
				second := q.newWaiter(s, Request{}).Member
				require.NoError(t, join(t, second))
				require.Nil(t, second.firstList)
				require.Zero(t, conn.reads.Load())
				first.node.LearnToken(1)
				first.cohort.held(first, true)
				second.node.Withdraw()
				first.node.Withdraw()
				synctest.Wait()

				next := q.newWaiter(s, Request{}).Member
				require.NoError(t, join(t, next))
				synctest.Wait()
				require.Equal(t, tells, next.firstList == nil)
				require.Equal(t, tells, conn.reads.Load() == 1)
				next.node.Withdraw()
			})
		})
	}
}

// A deniedConn creates nothing.
type deniedConn struct{ stubconn.Conn }

func (*deniedConn) Create(string, []byte, int32, []zk.ACL) (string, error) {
	return "", zk.ErrNoAuth
}

// Nobody waits for a znode that is not coming.
func TestACohortKeepsNobodyWhoHasNotCome(t *testing.T) {
	q, _ := stubQueue(t)
	m := q.newWaiter(stubconn.Use(t, &deniedConn{}), Request{}).Member
	require.ErrorIs(t, join(t, m), zk.ErrNoAuth)
	require.True(t, m.cohort.unused)
	plan := m.cohort.order.Creating(q.Kind, 1)
	require.Equal(t, order.WithList, plan, "nobody else is coming")
}

// An orphanConn loses the answer to a create, which is done late: when another of the
// same owner is.
type orphanConn struct {
	stubconn.Conn
	lag     time.Duration // from then on until a list shows both
	mu      sync.Mutex
	orphan  string
	created time.Time
	deleted []string
}

func (c *orphanConn) Create(
	path string, _ []byte, _ int32, _ []zk.ACL,
) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.orphan == "" {
		c.orphan = path + "0000000000"
		return "", zk.ErrConnectionClosed
	}
	c.created, c.Name = time.Now(), path[len("/lock/"):]+"0000000001"
	return path + "0000000001", nil
}

func (c *orphanConn) Children(string) ([]string, *zk.Stat, error) {
	time.Sleep(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.created.IsZero() || time.Since(c.created) < c.lag {
		return nil, &zk.Stat{}, nil
	}
	return []string{c.orphan[len("/lock/"):], c.Name}, &zk.Stat{Pzxid: 1}, nil
}

func (c *orphanConn) Delete(path string, _ int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleted = append(c.deleted, path)
	return nil
}

func (c *orphanConn) seen() (orphan string, deleted []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orphan, slices.Clone(c.deleted)
}

// An orphan that a list shows is deleted, whichever list it is: its owner waits for it.
func TestAListThatShowsAnOrphan(t *testing.T) {
	for name, lag := range map[string]time.Duration{
		"behind the create": 0, "later": 1500 * time.Microsecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, _ := stubQueue(t)
				conn := &orphanConn{lag: lag}
				s := stubconn.Use(t, conn)
				done := make(chan error, 1)
				go func() {
					_, err := q.Enter(t.Context(), s, Request{StallTimeout: time.Second})
					done <- err
				}()
				time.Sleep(100 * time.Millisecond)
				orphan, deleted := conn.seen()
				require.Equal(t, []string{orphan}, deleted)
				require.Error(t, <-done)
			})
		})
	}
}
