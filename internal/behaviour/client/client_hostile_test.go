package client_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// hostileServer is the address of a cluster's only server.
const hostileServer = "zktest-1:2181"

// hostileReplies are those in the place of answers to requests of some kinds.
func hostileReplies(keep func(zktest.Op) bool) []zktest.HostileReply {
	return slices.DeleteFunc(zktest.HostileReplies(), func(r zktest.HostileReply) bool {
		return !keep(r.Op)
	})
}

// hostileCalls are a call of a Client for each request in the place of whose answer there
// are hostile replies.
var hostileCalls = map[zktest.Op]func(*recipes.Client) error{
	zktest.OpChildren: func(c *recipes.Client) error {
		_, _, err := c.Children("/")
		return err
	},
	zktest.OpGet: func(c *recipes.Client) error {
		_, _, err := c.Get("/a")
		return err
	},
	zktest.OpGetACL: func(c *recipes.Client) error {
		_, _, err := c.Unwrap().GetACL("/a")
		return err
	},
	zktest.OpMulti: func(c *recipes.Client) error {
		_, err := c.Multi(
			&zk.CheckVersionRequest{Path: "/a", Version: -1},
			&zk.SetDataRequest{Path: "/a", Version: -1},
		)
		return err
	},
	zktest.OpExists: func(c *recipes.Client) error {
		_, _, err := c.Unwrap().Exists("/a")
		return err
	},
	zktest.OpSet: func(c *recipes.Client) error {
		_, err := c.Set("/a", nil, -1)
		return err
	},
	zktest.OpSetACL: func(c *recipes.Client) error {
		_, err := c.Unwrap().SetACL("/a", zk.WorldACL(zk.PermAll), -1)
		return err
	},
	zktest.OpCreate: func(c *recipes.Client) error {
		_, err := c.Create("/a/b-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
		return err
	},
	zktest.OpCreateContainer: func(c *recipes.Client) error {
		_, err := c.CreateContainer("/c", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll))
		if errors.Is(err, zk.ErrNodeExists) {
			return nil // the answer to the first was not the server's
		}
		return err
	},
	zktest.OpSync: func(c *recipes.Client) error {
		_, err := c.Sync("/a")
		return err
	},
	zktest.OpDelete: func(c *recipes.Client) error {
		err := c.Delete("/nothing", -1)
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		return err
	},
}

// A hostileLog can be read while it is written to.
type hostileLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *hostileLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *hostileLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// hostileClient returns a client of a cluster of its own, with what it logs.
func hostileClient(
	t *testing.T, opts ...recipes.ClientOption,
) (c *recipes.Client, link *zktest.Link, log *hostileLog) {
	t.Helper()
	link, log = zktest.Start(t).Link("victim"), &hostileLog{}
	c = hostileConnect(t, link, append(opts,
		recipes.WithClientLogger(slog.New(slog.NewTextHandler(log, nil))))...)
	_, err := c.Create("/a", nil, 0, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	return c, link, log
}

func hostileConnect(
	t *testing.T, link *zktest.Link, opts ...recipes.ClientOption,
) *recipes.Client {
	t.Helper()
	c, err := recipes.Connect(t.Context(), hostileServer, 10*time.Second,
		append(opts, recipes.WithDialer(link.Dial))...)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// allocates returns how many bytes f allocates.
func allocates(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What no ZooKeeper sends costs the connection, and a line in the log: no crash, no
// memory, no wrong answer, and not the session.
func TestClientCutsAHostileServer(t *testing.T) {
	inSession := func(op zktest.Op) bool { return op != zktest.OpConnect }
	for _, r := range hostileReplies(inSession) {
		locktest.RunVirtual(t, r.Name, func(t *testing.T) {
			var gone []recipes.SessionEvent
			c, link, log := hostileClient(t, recipes.WithClientObserver(
				func(e recipes.SessionEvent) {
					if e.Kind == recipes.SessionDisconnected {
						gone = append(gone, e)
					}
				}))
			session := c.SessionID()
			link.Hostile(r)
			var err error
			cost := allocates(func() { err = hostileCalls[r.Op](c) })
			if r.Name == "twice" {
				require.NoError(t, err, "only the second reply is malformed")
			} else {
				require.ErrorIs(t, err, zk.ErrConnectionClosed)
			}
			require.Less(t, cost, uint64(8<<20))
			time.Sleep(2 * time.Second) // it connects again
			require.NoError(t, hostileCalls[r.Op](c))
			require.Equal(t, session, c.SessionID())
			synctest.Wait() // until all is logged
			require.Contains(t, log.String(), "malformed reply, connection cut")
			require.Len(t, gone, 1)
			require.ErrorIs(t, gone[0].Err, zk.ErrConnectionClosed)
			require.NotEqual(t, zk.ErrConnectionClosed, gone[0].Err, "it says why")
		})
	}
}

func TestConnectToAHostileServer(t *testing.T) {
	handshakes := func(op zktest.Op) bool { return op == zktest.OpConnect }
	for _, r := range hostileReplies(handshakes) {
		locktest.RunVirtual(t, r.Name, func(t *testing.T) {
			clientLeaks(t)
			link := zktest.Start(t).Link("victim")
			link.Hostile(r)
			var err error
			began := time.Now()
			cost := allocates(func() {
				var c *recipes.Client
				c, err = recipes.Connect(t.Context(), hostileServer, 10*time.Second,
					recipes.WithDialer(link.Dial))
				if err == nil {
					c.Close()
				}
			})
			if err != nil { // the only server is not ZooKeeper's
				require.ErrorContains(t, err, "answer is not ZooKeeper's")
			}
			require.Less(t, cost, uint64(8<<20))
			require.LessOrEqual(t, time.Since(began), 3*time.Second)
		})
	}
}

// A lock is acquired and released through hostile answers to whatever it asks.
func TestALockOnAHostileServer(t *testing.T) {
	for _, r := range hostileReplies(func(op zktest.Op) bool {
		return op == zktest.OpCreate || op == zktest.OpCreateContainer ||
			op == zktest.OpChildren || op == zktest.OpDelete
	}) {
		locktest.RunVirtual(t, r.Name, func(t *testing.T) {
			c, link, _ := hostileClient(t)
			first := locktest.NewMutex(t, c, "/a/lock")
			second := locktest.NewMutex(t, c, "/a/lock")
			for range 3 {
				link.Hostile(r)
				one := recipes.WithOwner(t.Context())
				require.NoError(t, first.Acquire(one))
				link.Hostile(r)
				two := recipes.WithOwner(t.Context())
				held, err := second.AcquireTimeout(two, 5*time.Second)
				require.False(t, held, "%v", err)
				link.Hostile(r)
				require.NoError(t, first.Release(one))
				link.Hostile(r)
				require.NoError(t, second.Acquire(two))
				require.NoError(t, second.Release(two))
			}
		})
	}
}

// With chroot or without, Connect ends with its ctx and says what the server did.
func TestConnectExplainsAHostileServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clientLeaks(t)
		n := clientNet{"a:2181": clientServe(1, 10*time.Second, nil)}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := recipes.Connect(ctx, "a/chroot", 10*time.Second,
			recipes.WithDialer(n.dial))
		require.ErrorIs(t, err, ctx.Err())
		require.ErrorContains(t, err,
			"a connection was cut: a:2181: the reply to exists: stat: ")
	})
}

func TestWithMaxReply(t *testing.T) {
	refused := []int{math.MinInt, -1, 0, 1, 4095}
	if past := int64(math.MaxInt32) + 1; past <= math.MaxInt {
		refused = append(refused, int(past))
	}
	for _, bytes := range refused {
		_, err := recipes.Connect(t.Context(), "a", time.Second,
			recipes.WithMaxReply(bytes))
		require.ErrorContains(t, err, "must be from 4096 to 2147483647")
	}
	// The data and a stat behind it, in a reply of that length.
	const most = 8192 - 16 - 4 - 68
	for _, size := range []int{most, most + 1} {
		synctest.Test(t, func(t *testing.T) {
			c, _, log := hostileClient(t, recipes.WithMaxReply(8192))
			_, err := c.Set("/a", make([]byte, size), -1)
			require.NoError(t, err)
			data, _, err := c.Get("/a")
			if size == most {
				require.NoError(t, err)
				require.Len(t, data, size)
				return
			}
			require.ErrorContains(t, err, "8193 bytes")
			require.ErrorContains(t, err, "WithMaxReply")
			synctest.Wait() // until all is logged
			require.Contains(t, log.String(), "reply too long, skipped")
			require.NotContains(t, log.String(), "connection lost")
		})
	}
}

func TestAnACLThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := hostileClient(t, recipes.WithMaxReply(4096))
		acl := zk.WorldACL(zk.PermAll)
		for i := range 200 {
			user := fmt.Sprintf("user-%04d", i)
			acl = append(acl, zk.DigestACL(zk.PermRead, user, "secret")...)
		}
		_, err := c.Create("/many", nil, 0, acl)
		require.NoError(t, err)
		_, _, err = c.GetACL("/many")
		require.ErrorContains(t, err, "WithMaxReply")
		require.ErrorContains(t, err, " bytes")
	})
}

// What costs most memory for its length is a list of names that are empty.
func TestWhatAListCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, link, _ := hostileClient(t, recipes.WithMaxReply(4<<20))
		const count = 1 << 20
		frame := make([]byte, 20+4+4*count+68)[:4<<20+4]
		names := (len(frame) - 20 - 4 - 68) / 4
		binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
		binary.BigEndian.PutUint32(frame[20:], uint32(names))
		link.Hostile(zktest.HostileReply{
			Op: zktest.OpChildren, Frame: func(xid int32) []byte {
				binary.BigEndian.PutUint32(frame[4:], uint32(xid))
				return frame
			},
		})
		cost := allocates(func() {
			children, _, err := c.Children("/")
			require.NoError(t, err)
			require.Len(t, children, names)
		})
		// The server of this test has a copy of its own.
		require.Less(t, cost, uint64((5+1)*len(frame)+1<<20))
	})
}

// A watch event that nobody has asked for costs no more than a reply of that length.
func TestWhatAnEventCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, link, _ := hostileClient(t, recipes.WithMaxReply(4<<20))
		var event []byte
		for _, field := range []uint32{4 << 20, math.MaxUint32, 0, 1, 0, 1, 3} {
			event = binary.BigEndian.AppendUint32(event, field)
		}
		event = binary.BigEndian.AppendUint32(event, 4<<20-16-8-4) // the path's length
		event = append(event, make([]byte, 4<<20-16-8-4)...)
		reply := make([]byte, 4+16+68)
		binary.BigEndian.PutUint32(reply, 16+68)
		const events = 10
		said := append(bytes.Repeat(event, events), reply...)
		link.Hostile(zktest.HostileReply{
			Op: zktest.OpExists, Frame: func(xid int32) []byte {
				binary.BigEndian.PutUint32(said[events*len(event)+4:], uint32(xid))
				return said
			},
		})
		cost := allocates(func() {
			require.NoError(t, hostileCalls[zktest.OpExists](c))
		})
		// The path of each, and what it is read into; the server has a copy of its own.
		require.Less(t, cost, uint64((1+1)*len(said)+2*len(event)))
	})
}

// A lie that outlasts the liar for a while, as docs/security.md says: honest servers turn
// away a client that was told of a zxid to come, until it has found out.
func TestAForgedZxid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, link, log := hostileClient(t)
		link.Hostile(zktest.HostileReply{
			Op: zktest.OpExists, Frame: func(xid int32) []byte {
				frame := binary.BigEndian.AppendUint32(nil, 16+68)
				frame = binary.BigEndian.AppendUint32(frame, uint32(xid))
				frame = binary.BigEndian.AppendUint64(frame, math.MaxInt64)
				return append(frame, make([]byte, 4+68)...)
			},
		})
		require.NoError(t, hostileCalls[zktest.OpExists](c))
		link.Reset()
		time.Sleep(c.SessionTimeout() - time.Second)
		synctest.Wait()
		require.NotContains(t, log.String(), historyOlder, "it may be an election")
		require.NotEqual(t, zk.StateHasSession, c.State())
		time.Sleep(c.SessionTimeout())
		synctest.Wait()
		require.Equal(t, zk.StateHasSession, c.State())
		require.Equal(t, 1, strings.Count(log.String(), historyOlder))
		require.Contains(t, log.String(), "seen=0x7fffffffffffffff")
		require.NoError(t, hostileCalls[zktest.OpGet](c))
	})
}

// Whatever a server answers, the process goes on.
func FuzzHostileServer(f *testing.F) {
	ops := []zktest.Op{
		zktest.OpChildren, zktest.OpGet, zktest.OpGetACL, zktest.OpMulti,
		zktest.OpExists, zktest.OpCreate, zktest.OpSync, zktest.OpConnect,
	}
	for _, r := range zktest.HostileReplies() {
		if at := slices.Index(ops, r.Op); at >= 0 && len(r.Frame(0)) < 1000 {
			f.Add(uint8(at), r.Frame(0))
		}
	}
	f.Fuzz(func(t *testing.T, at uint8, frame []byte) {
		op := ops[int(at)%len(ops)]
		says := func(xid int32) []byte {
			says := slices.Clone(frame)
			if len(says) >= 8 && bytes.Equal(says[4:8], make([]byte, 4)) {
				binary.BigEndian.PutUint32(says[4:], uint32(xid))
			}
			return says
		}
		synctest.Test(t, func(t *testing.T) {
			c, link, _ := hostileClient(t)
			link.Hostile(zktest.HostileReply{Op: op, Frame: says})
			called := make(chan struct{})
			go func() {
				defer close(called)
				if op == zktest.OpConnect {
					link.Reset()
					return
				}
				_ = hostileCalls[op](c) // it may be a lie
			}()
			time.Sleep(30 * time.Second)
			link.Reset() // ends a call that has no answer
			<-called
			// c itself may not: honest servers turn a client away that was told of a
			// zxid to come.
			c.Close()
			require.NoError(t, hostileCalls[zktest.OpGet](hostileConnect(t, link)))
		})
	})
}
