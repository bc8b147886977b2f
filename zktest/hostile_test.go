package zktest_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// bytesFrom reads as many bytes as want has.
func (raw *rawClient) bytesFrom(want []byte) []byte {
	raw.t.Helper()
	got := make([]byte, len(want))
	_ = raw.SetReadDeadline(time.Now().Add(time.Hour))
	_, err := io.ReadFull(raw, got)
	require.NoError(raw.t, err)
	return got
}

// A hostile reply goes out as it is in the place of one answer, to a request that has
// taken effect; what comes before and behind it is answered as ever.
func TestHostile(t *testing.T) {
	for _, op := range []zktest.Op{zktest.OpCreate, zktest.Any} {
		synctest.Test(t, func(t *testing.T) {
			c := zktest.Start(t)
			link := c.Link("p")
			raw := dialRaw(t, link, c.Server(0)).open(sessionTimeout)
			other := dialRaw(t, c.Link("other"), c.Server(0)).open(sessionTimeout)
			link.Hostile(zktest.HostileReply{Op: op, Frame: func(xid int32) []byte {
				return binary.BigEndian.AppendUint32([]byte("harm"), uint32(xid))
			}})
			other.send(creation(1, "/other", 0))
			require.Equal(t, outcome{1, 0}, other.answer(), "others are spared")
			if op != zktest.Any {
				raw.send(existence(6, "/"))
				require.Equal(t, outcome{6, 0}, raw.answer(), "so are other requests")
			}
			raw.send(creation(7, "/a", 0), creation(8, "/b", 0))
			want := []byte("harm\x00\x00\x00\x07")
			require.Equal(t, want, raw.bytesFrom(want))
			require.Equal(t, outcome{8, 0}, raw.answer(), "only one is hostile")
			require.Equal(t, []string{"/a", "/b", "/other"}, c.Znodes())
		})
	}
}

func TestHostileIsSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		link := c.Link("p")
		for _, r := range zktest.HostileReplies() {
			link.Hostile(r)
		}
		link.Spare()
		raw := dialRaw(t, link, c.Server(0)).open(sessionTimeout)
		raw.send(existence(1, "/"), creation(2, "/a", 0))
		require.Equal(t, outcome{1, 0}, raw.answer())
		require.Equal(t, outcome{2, 0}, raw.answer())
	})
}

// A handshake is answered so once; Any does not stand for it.
func TestHostileHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := zktest.Start(t)
		link := c.Link("p")
		harm := func(int32) []byte { return []byte("harm") }
		link.Hostile(zktest.HostileReply{Op: zktest.OpConnect, Frame: harm})
		raw := dialRaw(t, link, c.Server(0))
		raw.send(greeting(&rawClient{}, sessionTimeout, 0))
		require.Equal(t, harm(0), raw.bytesFrom(harm(0)))
		link.Hostile(zktest.HostileReply{Op: zktest.Any, Frame: harm})
		again := dialRaw(t, link, c.Server(0)).open(sessionTimeout)
		again.send(ping())
		require.Equal(t, harm(0), again.bytesFrom(harm(0)))
	})
}

func TestEachHostileReplyHasItsName(t *testing.T) {
	names := map[string]bool{}
	for _, r := range zktest.HostileReplies() {
		require.False(t, names[r.Name], r.Name)
		names[r.Name] = true
		require.NotZero(t, r.Op, r.Name)
		require.GreaterOrEqual(t, len(r.Frame(5)), 20, r.Name)
		require.Equal(t, r.Frame(5), r.Frame(5), r.Name)
	}
	require.Greater(t, len(names), 40)
}

// lives requires that a server still does its work.
func lives(t *testing.T, c *zktest.Cluster) {
	t.Helper()
	good := dialRaw(t, c.Link("good"), c.Server(0)).open(sessionTimeout)
	good.send(existence(1, "/"), creation(2, "/good-", 2))
	require.Equal(t, outcome{1, 0}, good.answer())
	// Somebody else may have changed who may create there.
	require.Contains(t, []outcome{{2, 0}, {2, -102}}, good.answer())
}

// On a length above the server's jute.maxbuffer it hangs up, before it allocates it; what
// a length within announces has to come first.
func TestAClientThatAnnouncesTooMuch(t *testing.T) {
	for _, length := range []uint32{0xfffff + 1, 0x7fffffff, 0x80000000, 0xffffffff} {
		for _, open := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				c := zktest.Start(t)
				raw := dialRaw(t, c.Link("bad"), c.Server(0))
				if open {
					raw.open(sessionTimeout)
				}
				_, err := raw.Write(binary.BigEndian.AppendUint32(nil, length))
				require.NoError(t, err)
				require.True(t, raw.hungUp())
				lives(t, c)
			})
		}
	}
}

// A real server's client sees the end of the connection, and not that it was reset: what
// is left unread resets it. Before the handshake, too.
func TestTheEndAfterAPacketThatIsTooLong(t *testing.T) {
	for name, open := range map[string]bool{"in a session": true, "before": false} {
		t.Run(name, func(t *testing.T) {
			cluster := zktest.Start(t)
			conn, err := net.Dial("tcp", cluster.Addrs()[0])
			require.NoError(t, err)
			defer conn.Close()
			raw := &rawClient{Conn: conn, t: t}
			if open {
				raw.open(10 * time.Second)
			}
			packet := binary.BigEndian.AppendUint32(nil, 2<<20)
			_, err = conn.Write(append(packet, make([]byte, 1<<20)...))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, conn)
			require.NoError(t, err)
			_, err = conn.Write([]byte("more"))
			require.NoError(t, err, "it is still read")
		})
	}
}

// Whatever a client says, in its handshake or behind one, the server lives.
func FuzzHostileClient(f *testing.F) {
	huge := func(b *buffer) { b.int32(0x7fffffff) }
	for _, op := range []int32{
		1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 100, 101, 105,
		106,
	} {
		packet := ask(1, op, huge)
		framed := binary.BigEndian.AppendUint32(nil, uint32(len(packet)))
		f.Add(true, append(framed, packet...))
	}
	for _, packet := range [][]byte{
		creation(1, "/a", 3), existence(1, "/"), synchrony(1), ping(), farewell(1),
		greeting(&rawClient{}, sessionTimeout, 0),
	} {
		framed := binary.BigEndian.AppendUint32(nil, uint32(len(packet)))
		f.Add(false, append(framed, packet...))
		f.Add(true, append(framed, packet...))
	}
	f.Fuzz(func(t *testing.T, open bool, says []byte) {
		synctest.Test(t, func(t *testing.T) {
			c := zktest.Start(t)
			raw := dialRaw(t, c.Link("bad"), c.Server(0))
			if open {
				raw.open(sessionTimeout)
			}
			go func() { _, _ = io.Copy(io.Discard, raw) }()
			_, _ = raw.Write(says) // the server may have hung up within
			synctest.Wait()
			lives(t, c)
			pass(3 * sessionTimeout) // what it has begun ends
			lives(t, c)
		})
	})
}
