package hazards_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// Codes that the client has no name for, and "session moved": the server is in trouble
// that passes.
func TestHazardE21_PassingErrors(t *testing.T) {
	testPassingErrors(t, -4, -7, -119, -127)
}

// The server has ignored the request, since the session is with another one now.
func TestHazardE22_SessionMoved(t *testing.T) { testPassingErrors(t, -118) }

func testPassingErrors(t *testing.T, codes ...int32) {
	t.Helper()
	t.Parallel()
	for _, code := range codes {
		for op, requests := range map[wiretap.Op]int{
			wiretap.Create: 2, wiretap.GetChildren2: 1, wiretap.GetData: 1,
			wiretap.Delete: 2,
		} {
			zkserver.Run(t, fmt.Sprintf("%d to %s", code, op), func(t *testing.T) {
				s := newScene(t)
				leave := s.occupy(t)
				refused := make(chan struct{})
				var once atomic.Bool
				s.Tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
					if p.Op != op || p.Path == "/" || !once.CompareAndSwap(false, true) {
						return wiretap.Pass
					}
					close(refused)
					return wiretap.Answer(code)
				})
				done := s.acquire()
				s.steps.Nth(t, recipes.EventQueued, 1)
				leave()
				require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
				s.holdsAlone(t)
				locktest.Within(t, refused, "nothing was refused")
				require.GreaterOrEqual(t, len(s.requests(op)), requests)
			})
		}
	}
}

// Wrong credentials are told by nothing but a NoAuth for each call.
func TestHazardE27_WrongCredentials(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		s := newScene(t)
		require.NoError(t, s.other.Conn.AddAuth("digest", []byte("admin:secret")))
		_, err := s.other.Conn.SetACL(s.path, zk.DigestACL(zk.PermAll, "admin", "secret"),
			-1)
		require.NoError(t, err)
		require.NoError(t, s.Conn.AddAuth("digest", []byte("admin:guess")))
		err = locktest.Within(t, s.acquire(), "it is tried again for ever")
		require.ErrorIs(t, err, zk.ErrNoAuth)
		require.ErrorContains(t, err, s.path)
		require.Len(t, s.requests(wiretap.Create), 1)
		require.Empty(t, s.other.Children(s.path))
	})
}

// A writeFault breaks a connection in one write: of a request with an operation that
// concerns a path or what is below.
type writeFault struct {
	op   uint32
	path string // set before armed
	// nil: nothing of that write gets through; else all does, and the write fails when
	// this is closed
	arrived chan struct{}
	armed   atomic.Bool
}

func (f *writeFault) hits(b []byte) bool {
	const behindXid = 8
	return f.armed.Load() && len(b) > behindXid+4 &&
		binary.BigEndian.Uint32(b[behindXid:]) == f.op &&
		bytes.Contains(b, []byte(f.path)) && f.armed.CompareAndSwap(true, false)
}

type brokenLine struct {
	net.Conn
	fault *writeFault
}

func (l *brokenLine) Write(b []byte) (int, error) {
	if !l.fault.hits(b) {
		return l.Conn.Write(b)
	}
	if l.fault.arrived != nil {
		if n, err := l.Conn.Write(b); err != nil {
			return n, err
		}
		<-l.fault.arrived
	}
	_ = l.Close()
	return 0, &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
}

// A write that fails comes back as it is, "write tcp: broken pipe", and nobody knows what
// the server got.
func TestHazardE10_RawWriteError(t *testing.T) {
	t.Parallel()
	zkserver.Resuming(t)
	codes := map[wiretap.Op]uint32{
		wiretap.Create: 1, wiretap.Delete: 2, wiretap.GetData: 4,
		wiretap.GetChildren2: 12,
	}
	for op, code := range codes {
		zkserver.Run(t, string(op)+" that has arrived", func(t *testing.T) {
			testRawWriteError(t, op, &writeFault{op: code, arrived: make(chan struct{})})
		})
		zkserver.Run(t, string(op)+" that has not arrived", func(t *testing.T) {
			testRawWriteError(t, op, &writeFault{op: code})
		})
	}
}

func testRawWriteError(t *testing.T, op wiretap.Op, fault *writeFault) {
	t.Helper()
	broken := func(conn net.Conn) net.Conn {
		return &brokenLine{Conn: conn, fault: fault}
	}
	p := locktest.NewPeerOver(t, locktest.ManyNames(t), locktest.Lasting, broken)
	s := newSceneWith(t, p)
	fault.path = s.path
	fault.armed.Store(true)
	if fault.arrived != nil {
		s.Tap.OnReply(func(request, _ wiretap.Packet) wiretap.Verdict {
			if request.Op != op || !strings.HasPrefix(request.Path, s.path) ||
				fault.armed.Load() {
				return wiretap.Pass
			}
			s.Tap.OnReply(nil)
			close(fault.arrived)
			return wiretap.Drop
		})
	}
	leave := s.occupy(t)
	done := s.acquire()
	s.steps.Nth(t, recipes.EventQueued, 1)
	leave()
	require.NoError(t, locktest.Within(t, done, "the lock is not acquired"))
	s.holdsAlone(t)
	require.False(t, fault.armed.Load(), "nothing broke")
	creates := s.requests(wiretap.Create)
	require.Equal(t, creates[0], creates[len(creates)-1], "it lost its place")
	if op == wiretap.Create {
		require.Len(t, creates, 1) // of one that did not arrive the tap knows nothing
	}
}

// An answer without a name in the client that no retry mends, here "quota exceeded", ends
// Acquire at once, also where it is a parent that cannot be made.
func TestHazardE21_FinalErrors(t *testing.T) {
	t.Parallel()
	for _, op := range []wiretap.Op{wiretap.Create, wiretap.CreateContainer} {
		zkserver.Run(t, string(op), func(t *testing.T) {
			p, path := locktest.SharedPeer(t), zkserver.Path(t)
			p.Tap.OnRequest(func(request wiretap.Packet) wiretap.Verdict {
				if request.Op == op {
					return wiretap.Answer(-125)
				}
				return wiretap.Pass
			})
			err := locktest.Within(t, locktest.Start(
				func() error { return p.Mutex(path).Acquire(t.Context()) },
			), "Acquire")
			require.ErrorContains(t, err, "-125 (quota exceeded: ")
			require.ErrorContains(t, err, "/zookeeper/quota")
			require.ErrorContains(t, err, path)
			require.Equal(t, 1, p.Tap.Count(op), "it was tried again")
		})
	}
}
