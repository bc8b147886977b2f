package znode_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/stubconn"
	"github.com/zkrecipes/recipes/internal/znode"
)

// A lossyConn loses the answers to creates.
type lossyConn struct {
	stubconn.Conn
	// what becomes of each create that is lost: znodes of these sessions; after those,
	// creates are answered
	becomes [][]int64
	read    func() error           // at each read of a znode
	look    atomic.Pointer[func()] // at each look at the session

	mu      sync.Mutex
	session int64
	flags   []int32
	number  int // of the next znode
	owners  map[string]int64
	deleted []string
	denied  bool // lists are refused
}

func (c *lossyConn) SessionID() int64 {
	if look := c.look.Load(); look != nil {
		(*look)()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

func (c *lossyConn) move() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session++
}

func (c *lossyConn) Create(
	path string, _ []byte, flags int32, _ []zk.ACL,
) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flags = append(c.flags, flags)
	if len(c.becomes) == 0 {
		return fmt.Sprintf("%s%010d", path, c.number), nil
	}
	for _, owner := range c.becomes[0] {
		c.owners[fmt.Sprintf("%s%010d", path, c.number)] = owner
		c.number++
	}
	c.becomes = c.becomes[1:]
	return "", zk.ErrConnectionClosed
}

func (c *lossyConn) Children(string) (names []string, _ *zk.Stat, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.denied {
		return nil, nil, zk.ErrNoAuth
	}
	for path := range c.owners {
		names = append(names, path[len("/lock/"):])
	}
	slices.SortFunc(names, func(a, b string) int {
		return int(a[len(a)-1]) - int(b[len(b)-1])
	})
	return append([]string{"_c_of-another-lock-0000000007"}, names...), &zk.Stat{}, nil
}

func (c *lossyConn) Get(path string) ([]byte, *zk.Stat, error) {
	if c.read != nil {
		if err := c.read(); err != nil {
			return nil, nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	owner, ok := c.owners[path]
	if !ok {
		return nil, nil, zk.ErrNoNode
	}
	return nil, &zk.Stat{EphemeralOwner: owner, Czxid: 5}, nil
}

func (c *lossyConn) Delete(path string, _ int32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.owners, path)
	c.deleted = append(c.deleted, path[len(path)-1:])
	return nil
}

// What is found of a create whose answer was lost: a znode of this session, the first if
// there are several, is taken over. All others are deleted, in this session.
func TestWhatIsFoundOfALostCreate(t *testing.T) {
	moved := func(c *lossyConn) { c.read = func() error { c.move(); return nil } }
	for name, c := range map[string]struct {
		becomes [][]int64
		then    func(c *lossyConn)
		number  string // of the znode that is taken
		token   int64  // 0: the create was answered, and tells none
		deleted []string
		err     error
	}{
		"nothing":               {becomes: [][]int64{{}}, number: "0"},
		"one of this session":   {becomes: [][]int64{{1}}, number: "0", token: 5},
		"two of this session":   {[][]int64{{1, 1}}, nil, "0", 5, []string{"1"}, nil},
		"one of another":        {[][]int64{{2}}, nil, "1", 0, []string{"0"}, nil},
		"first one of another":  {[][]int64{{2, 1}}, nil, "1", 5, []string{"0"}, nil},
		"one of a session past": {[][]int64{{1}}, moved, "1", 0, nil, nil},
		"one that goes": {becomes: [][]int64{{1}}, then: func(c *lossyConn) {
			c.read = func() error { return zk.ErrNoNode }
		}, number: "1"},
		"one that cannot be read": {becomes: [][]int64{{1}}, then: func(c *lossyConn) {
			c.read = func() error { return zk.ErrNoAuth }
		}, deleted: []string{"0"}, err: zk.ErrNoAuth},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn := &lossyConn{
					becomes: c.becomes, session: 1, owners: map[string]int64{},
				}
				if c.then != nil {
					c.then(conn)
				}
				s, spec := stubconn.Use(t, conn), stubconn.Spec()
				n, err := znode.Create(t.Context(), s, &spec, "", znode.NoHooks{})
				synctest.Wait()
				conn.mu.Lock()
				deleted, flags := slices.Clone(conn.deleted), slices.Clone(conn.flags)
				conn.mu.Unlock()
				require.Equal(t, c.deleted, deleted)
				for _, f := range flags {
					require.EqualValues(t, zk.FlagEphemeral|zk.FlagSequence, f)
				}
				if c.err != nil {
					require.ErrorIs(t, err, c.err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.number, n.Path[len(n.Path)-1:])
				require.Equal(t, c.token, n.Token())
				require.Equal(t, len(flags) > 1, n.MayHaveOrphans())
				n.Withdraw()
			})
		})
	}
}

// Where the znode of a lost create cannot be looked for, the call ends. The search goes
// on, and what it finds is deleted, also where that is refused at first.
func TestASearchThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &lossyConn{
			becomes: [][]int64{{1}}, session: 1, owners: map[string]int64{}, denied: true,
		}
		s, spec := stubconn.Use(t, conn), stubconn.Spec()
		_, err := znode.Create(t.Context(), s, &spec, "", znode.NoHooks{})
		require.ErrorIs(t, err, zk.ErrNoAuth)
		time.Sleep(time.Hour)
		conn.mu.Lock()
		require.Len(t, conn.owners, 1)
		conn.denied = false
		conn.mu.Unlock()
		time.Sleep(time.Minute)
		conn.mu.Lock()
		defer conn.mu.Unlock()
		require.Empty(t, conn.owners)
		require.Equal(t, []string{"0"}, conn.deleted)
	})
}

// An orphan that a list shows again and again, since its delete is refused, is deleted by
// one.
func TestAnOrphanWhoseDeleteIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &watchedConn{lossyConn: lossyConn{
			becomes: [][]int64{{1, 1}}, owners: map[string]int64{},
		}, removal: zk.ErrNoAuth}
		n := join(t, conn, znode.NoHooks{}, znode.Terms{})
		orphan := n.Name()[:len(n.Name())-1] + "1"
		for range 1000 {
			n.DiscardOrphan(orphan)
			time.Sleep(time.Second)
		}
		require.Less(t, conn.tries(), 50)
		conn.answer(nil)
		n.Withdraw()
		time.Sleep(time.Minute)
	})
}
