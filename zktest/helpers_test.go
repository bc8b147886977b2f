package zktest_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// tickTime is the usual tick of these tests, sessionTimeout the one that their clients
// usually ask for.
const (
	tickTime       = 2 * time.Second
	sessionTimeout = 12 * time.Second
)

var anyone = zk.WorldACL(zk.PermAll)

type noLog struct{}

func (noLog) Printf(string, ...any) {}

// oneServer is a host provider that names one. The client pauses for a second before each
// attempt to connect to it.
type oneServer string

func (oneServer) Init([]string) error    { return nil }
func (oneServer) Len() int               { return 1 }
func (j oneServer) Next() (string, bool) { return string(j), true }
func (oneServer) Connected()             {}

// A zkClient is go-zookeeper's client.
type zkClient struct {
	*zk.Conn
	t      *testing.T
	states chan zk.State
	events chan zk.Event // of watches, in the order in which they came
}

// connect connects by way of a link with any server, or with the one that is named, and
// waits for the session.
func connect(
	t *testing.T, link *zktest.Link, to zk.HostProvider, timeout time.Duration,
) *zkClient {
	t.Helper()
	cl := &zkClient{
		t: t, states: make(chan zk.State, 10000), events: make(chan zk.Event, 10000),
	}
	hear := func(e zk.Event) {
		switch {
		case e.Type == zk.EventSession:
			cl.states <- e.State
		case e.Err == nil:
			cl.events <- e
		}
	}
	var err error
	cl.Conn, _, err = zk.Connect([]string{"x"}, timeout,
		zk.WithDialer(link.Dial), zk.WithHostProvider(to), zk.WithLogger(noLog{}),
		zk.WithLogInfo(false), zk.WithEventCallback(hear))
	require.NoError(t, err)
	t.Cleanup(cl.Close)
	cl.until(zk.StateHasSession)
	return cl
}

// connectTo connects to one server by a link of its own name.
func connectTo(t *testing.T, c *zktest.Cluster, s *zktest.Server) *zkClient {
	t.Helper()
	return connect(t, c.Link(s.Addr()), oneServer(s.Addr()), sessionTimeout)
}

// until waits for a state, and drops those before it.
func (cl *zkClient) until(want zk.State) {
	cl.t.Helper()
	timer := time.NewTimer(10 * time.Minute)
	defer timer.Stop()
	for {
		select {
		case got := <-cl.states:
			if got == want {
				return
			}
		case <-timer.C:
			cl.t.Fatalf("no %v", want)
		}
	}
}

// passed returns the states since the last call.
func (cl *zkClient) passed() []zk.State {
	synctest.Wait()
	var all []zk.State
	for len(cl.states) > 0 {
		all = append(all, <-cl.states)
	}
	return all
}

// told returns the events since the last call, "EventNodeCreated /a".
func (cl *zkClient) told() []string {
	synctest.Wait()
	all := []string{}
	for len(cl.events) > 0 {
		e := <-cl.events
		all = append(all, e.Type.String()+" "+e.Path)
	}
	return all
}

func (cl *zkClient) create(path string, flags int32) string {
	cl.t.Helper()
	got, err := cl.Create(path, []byte("x"), flags, anyone)
	require.NoError(cl.t, err)
	return got
}

func (cl *zkClient) has(path string) bool {
	cl.t.Helper()
	found, _, err := cl.Exists(path)
	require.NoError(cl.t, err)
	return found
}

func (cl *zkClient) sync() {
	cl.t.Helper()
	_, err := cl.Sync("/")
	require.NoError(cl.t, err)
}

// later runs f beside the test.
func later[T any](f func() T) <-chan T {
	done := make(chan T, 1)
	go func() { done <- f() }()
	return done
}

// hangs requires that something does not come for a while.
func hangs[T any](t *testing.T, what <-chan T, while time.Duration) {
	t.Helper()
	select {
	case got := <-what:
		t.Fatalf("it ended: %v", got)
	case <-time.After(while):
		synctest.Wait()
	}
}

// soon takes what comes within a day, which is nothing in a bubble.
func soon[T any](t *testing.T, what <-chan T) T {
	t.Helper()
	var got T
	select {
	case got = <-what:
	case <-time.After(24 * time.Hour):
		t.Fatal("nothing came")
	}
	return got
}

// pass lets time go by, with all that is due by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// three starts an ensemble of three, and returns two of its followers.
func three(
	t *testing.T, opts ...zktest.Option,
) (c *zktest.Cluster, f1, f2 *zktest.Server) {
	t.Helper()
	c = zktest.Start(t, append(
		[]zktest.Option{zktest.WithServers(3), zktest.WithTick(tickTime)}, opts...,
	)...)
	followers := without(c.Servers(), c.Leader())
	return c, followers[0], followers[1]
}

func without(all []*zktest.Server, one *zktest.Server) []*zktest.Server {
	var others []*zktest.Server
	for _, s := range all {
		if s != one {
			others = append(others, s)
		}
	}
	return others
}

// A rawClient is a connection of which the test writes the packets: it sends no ping, and
// tells all.
type rawClient struct {
	net.Conn
	t       *testing.T
	session int64
	timeout time.Duration // that was granted
	secret  []byte
}

func dialRaw(t *testing.T, link *zktest.Link, s *zktest.Server) *rawClient {
	t.Helper()
	conn, err := link.Dial("tcp", s.Addr(), time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &rawClient{Conn: conn, t: t}
}

// greeting is what a client says first. The zero rawClient asks for a new session.
func greeting(old *rawClient, timeout time.Duration, seen int64) []byte {
	var b buffer
	b.int32(0)
	b.int64(seen)
	b.int32(int32(timeout.Milliseconds()))
	b.int64(old.session)
	b.bytes(append(make([]byte, 0, 16), old.secret...))
	b.bool(false)
	return b.left
}

// ask packs a request. fields gives its body.
func ask(xid, op int32, fields func(*buffer)) []byte {
	var b buffer
	b.int32(xid)
	b.int32(op)
	if fields != nil {
		fields(&b)
	}
	return b.left
}

func creation(xid int32, path string, flags int32) []byte {
	return ask(xid, 1, func(b *buffer) {
		b.bytes([]byte(path))
		b.bytes(nil)
		b.acl(anyone)
		b.int32(flags)
	})
}

func existence(xid int32, path string) []byte {
	return ask(xid, 3, func(b *buffer) {
		b.bytes([]byte(path))
		b.bool(false)
	})
}

func synchrony(xid int32) []byte {
	return ask(xid, 9, func(b *buffer) { b.bytes([]byte("/")) })
}
func ping() []byte              { return ask(-2, 11, nil) }
func farewell(xid int32) []byte { return ask(xid, -11, nil) }

// send writes packets with one call, as far as the server takes them.
func (raw *rawClient) send(packets ...[]byte) {
	raw.t.Helper()
	var all []byte
	for _, packet := range packets {
		all = binary.BigEndian.AppendUint32(all, uint32(len(packet)))
		all = append(all, packet...)
	}
	_, err := raw.Write(all)
	require.NoError(raw.t, err)
}

// frame reads a packet; nil if the server has closed the connection.
func (raw *rawClient) frame() *buffer {
	raw.t.Helper()
	// A pipe whose other end is closed needs none.
	_ = raw.SetReadDeadline(time.Now().Add(time.Hour))
	var size [4]byte
	if _, err := io.ReadFull(raw, size[:]); err != nil {
		require.ErrorIs(raw.t, err, io.EOF)
		return nil
	}
	packet := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(raw, packet)
	require.NoError(raw.t, err)
	return &buffer{left: packet}
}

// An outcome is the head of an answer.
type outcome struct {
	xid  int32
	code int32
}

// answer reads the next answer; the zero one if the server has closed the connection.
func (raw *rawClient) answer() outcome {
	raw.t.Helper()
	b := raw.frame()
	if b == nil {
		return outcome{}
	}
	xid := b.getInt32()
	b.getInt64()
	return outcome{xid, b.getInt32()}
}

func (raw *rawClient) closed() bool { return raw.answer() == outcome{} }

// hungUp: the server has closed the connection, and not only since it was idle.
func (raw *rawClient) hungUp() bool {
	began := time.Now()
	return raw.closed() && time.Now().Equal(began)
}

// welcome reads the answer to a greeting; false if the session is over, or the server has
// closed the connection.
func (raw *rawClient) welcome() bool {
	raw.t.Helper()
	b := raw.frame()
	if b == nil {
		return false
	}
	b.getInt32()
	raw.timeout = time.Duration(b.getInt32()) * time.Millisecond
	raw.session, raw.secret = b.getInt64(), b.getBytes()
	return raw.session != 0
}

// open gets a session.
func (raw *rawClient) open(timeout time.Duration) *rawClient {
	raw.t.Helper()
	raw.send(greeting(&rawClient{}, timeout, 0))
	require.True(raw.t, raw.welcome())
	return raw
}

// reopen takes up the session of another connection.
func (raw *rawClient) reopen(old *rawClient) bool {
	raw.t.Helper()
	raw.send(greeting(old, old.timeout, 0))
	return raw.welcome()
}

// newCluster starts a cluster that the test closes by itself.
func newCluster(t *testing.T, opts ...zktest.Option) *zktest.Cluster {
	t.Helper()
	c, err := zktest.New(opts...)
	require.NoError(t, err)
	return c
}

// A fatal is a test that ends when something is wrong.
type fatal struct {
	zktest.TB
	said string
}

func (f *fatal) Helper() {}

func (f *fatal) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}
