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

// beat is the usual tick of these tests, term the session timeout that their clients usually ask for.
const (
	beat = 2 * time.Second
	term = 12 * time.Second
)

var anyone = zk.WorldACL(zk.PermAll)

type mute struct{}

func (mute) Printf(string, ...any) {}

// just names one server. The client pauses for a second before each attempt to connect to it.
type just string

func (just) Init([]string) error    { return nil }
func (just) Len() int               { return 1 }
func (j just) Next() (string, bool) { return string(j), true }
func (just) Connected()             {}

// A guest is go-zookeeper's client.
type guest struct {
	*zk.Conn
	t      *testing.T
	states chan zk.State
	events chan zk.Event // of watches, in the order in which they came
}

// visit connects by way of a link with any server, or with the one that is named, and waits for the session.
func visit(t *testing.T, link *zktest.Link, to zk.HostProvider, timeout time.Duration) *guest {
	t.Helper()
	g := &guest{t: t, states: make(chan zk.State, 10000), events: make(chan zk.Event, 10000)}
	hear := func(e zk.Event) {
		switch {
		case e.Type == zk.EventSession:
			g.states <- e.State
		case e.Err == nil:
			g.events <- e
		}
	}
	var err error
	g.Conn, _, err = zk.Connect([]string{"x"}, timeout,
		zk.WithDialer(link.Dial), zk.WithHostProvider(to), zk.WithLogger(mute{}), zk.WithLogInfo(false), zk.WithEventCallback(hear))
	require.NoError(t, err)
	t.Cleanup(g.Close)
	g.until(zk.StateHasSession)
	return g
}

// at visits one server by a link of its own name.
func at(t *testing.T, s *zktest.Server, p *zktest.Peer) *guest {
	t.Helper()
	return visit(t, s.Link(p.Addr()), just(p.Addr()), term)
}

// until waits for a state, and drops those before it.
func (g *guest) until(want zk.State) {
	g.t.Helper()
	timer := time.NewTimer(10 * time.Minute)
	defer timer.Stop()
	for {
		select {
		case got := <-g.states:
			if got == want {
				return
			}
		case <-timer.C:
			g.t.Fatalf("no %v", want)
		}
	}
}

// passed returns the states since the last call.
func (g *guest) passed() []zk.State {
	synctest.Wait()
	var all []zk.State
	for len(g.states) > 0 {
		all = append(all, <-g.states)
	}
	return all
}

// told returns the events since the last call, "EventNodeCreated /a".
func (g *guest) told() []string {
	synctest.Wait()
	all := []string{}
	for len(g.events) > 0 {
		e := <-g.events
		all = append(all, e.Type.String()+" "+e.Path)
	}
	return all
}

func (g *guest) create(path string, flags int32) string {
	g.t.Helper()
	got, err := g.Create(path, []byte("x"), flags, anyone)
	require.NoError(g.t, err)
	return got
}

func (g *guest) has(path string) bool {
	g.t.Helper()
	found, _, err := g.Exists(path)
	require.NoError(g.t, err)
	return found
}

func (g *guest) sync() {
	g.t.Helper()
	_, err := g.Sync("/")
	require.NoError(g.t, err)
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
func three(t *testing.T, opts ...zktest.Option) (s *zktest.Server, f1, f2 *zktest.Peer) {
	t.Helper()
	s = zktest.Start(t, append([]zktest.Option{zktest.WithServers(3), zktest.WithTick(beat)}, opts...)...)
	followers := without(s.Peers(), s.Leader())
	return s, followers[0], followers[1]
}

func without(all []*zktest.Peer, one *zktest.Peer) []*zktest.Peer {
	var others []*zktest.Peer
	for _, p := range all {
		if p != one {
			others = append(others, p)
		}
	}
	return others
}

// A plug is a connection of which the test writes the packets: it sends no ping, and tells all.
type plug struct {
	net.Conn
	t       *testing.T
	session int64
	timeout time.Duration // that was granted
	secret  []byte
}

func plugIn(t *testing.T, link *zktest.Link, p *zktest.Peer) *plug {
	t.Helper()
	conn, err := link.Dial("tcp", p.Addr(), time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &plug{Conn: conn, t: t}
}

// greeting is what a client says first. The zero plug asks for a new session.
func greeting(old *plug, timeout time.Duration, seen int64) []byte {
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

func synchrony(xid int32) []byte { return ask(xid, 9, func(b *buffer) { b.bytes([]byte("/")) }) }
func ping() []byte               { return ask(-2, 11, nil) }
func farewell(xid int32) []byte  { return ask(xid, -11, nil) }

// send writes packets with one call, as far as the server takes them.
func (p *plug) send(packets ...[]byte) {
	p.t.Helper()
	var all []byte
	for _, packet := range packets {
		all = binary.BigEndian.AppendUint32(all, uint32(len(packet)))
		all = append(all, packet...)
	}
	_, err := p.Write(all)
	require.NoError(p.t, err)
}

// frame reads a packet; nil if the server has closed the connection.
func (p *plug) frame() *buffer {
	p.t.Helper()
	_ = p.SetReadDeadline(time.Now().Add(time.Hour)) // a pipe whose other end is closed needs none
	var size [4]byte
	if _, err := io.ReadFull(p, size[:]); err != nil {
		require.ErrorIs(p.t, err, io.EOF)
		return nil
	}
	packet := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(p, packet)
	require.NoError(p.t, err)
	return &buffer{left: packet}
}

// An outcome is the head of an answer.
type outcome struct {
	xid  int32
	code int32
}

// answer reads the next answer; the zero one if the server has closed the connection.
func (p *plug) answer() outcome {
	p.t.Helper()
	b := p.frame()
	if b == nil {
		return outcome{}
	}
	xid := b.getInt32()
	b.getInt64()
	return outcome{xid, b.getInt32()}
}

func (p *plug) closed() bool { return p.answer() == outcome{} }

// hungUp: the server has closed the connection, and not only since it was idle.
func (p *plug) hungUp() bool {
	began := time.Now()
	return p.closed() && time.Now().Equal(began)
}

// welcome reads the answer to a greeting; false if the session is over, or the server has closed the connection.
func (p *plug) welcome() bool {
	p.t.Helper()
	b := p.frame()
	if b == nil {
		return false
	}
	b.getInt32()
	p.timeout = time.Duration(b.getInt32()) * time.Millisecond
	p.session, p.secret = b.getInt64(), b.getBytes()
	return p.session != 0
}

// open gets a session.
func (p *plug) open(timeout time.Duration) *plug {
	p.t.Helper()
	p.send(greeting(&plug{}, timeout, 0))
	require.True(p.t, p.welcome())
	return p
}

// reopen takes up the session of another connection.
func (p *plug) reopen(old *plug) bool {
	p.t.Helper()
	p.send(greeting(old, old.timeout, 0))
	return p.welcome()
}

// fresh starts a service that the test closes by itself.
func fresh(t *testing.T, opts ...zktest.Option) *zktest.Server {
	t.Helper()
	s, err := zktest.New(opts...)
	require.NoError(t, err)
	return s
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
