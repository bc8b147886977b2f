package wiretap_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// fake is as much of a ZooKeeper server as the taps' tests need: sessions that never
// expire, and a tree without ACLs, versions and containers. It reads and writes the
// protocol with code of its own, so that a tap that misreads it shows.
type fake struct {
	think time.Duration // what each answer takes; set while nothing is asked

	mu       sync.Mutex
	sessions int64
	next     int32             // the next sequence number, of all parents
	data     map[string]string // by path
	watches  map[string][]net.Conn
}

func newFake() *fake {
	return &fake{data: map[string]string{"/": ""}, watches: map[string][]net.Conn{}}
}

// Dial is a zk.Dialer.
func (f *fake) Dial(string, string, time.Duration) (net.Conn, error) {
	client, server := net.Pipe()
	go f.serve(server)
	return client, nil
}

func (f *fake) exists(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.data[path]
	return ok
}

func (f *fake) serve(conn net.Conn) {
	defer conn.Close()
	hello := receive(conn)
	if hello == nil {
		return
	}
	f.mu.Lock()
	session := binary.BigEndian.Uint64(hello[16:])
	if session == 0 {
		f.sessions++
		session = uint64(f.sessions)
	}
	f.mu.Unlock()
	var welcome packet
	welcome.int32(0).bytes(hello[12:16]).int64(int64(session)).string(
		strings.Repeat("p", 16),
	).send(conn)
	for {
		request := receive(conn)
		if request == nil {
			return
		}
		xid, op := request.int32At(0), request.int32At(4)
		time.Sleep(f.think)
		f.mu.Lock()
		code, answer := f.answer(conn, op, request[8:])
		f.mu.Unlock()
		var reply packet
		reply.int32(xid).int64(1).int32(code)
		if code == 0 {
			reply.bytes(answer)
		}
		reply.send(conn)
		if op == -11 {
			return
		}
	}
}

// answer does what is asked; each event goes out ahead of the reply to what caused it.
func (f *fake) answer(conn net.Conn, op int32, body packet) (code int32, answer packet) {
	if op == 11 || op == 100 || op == -11 {
		return 0, nil
	}
	name, rest := body.cutString()
	_, found := f.data[name]
	switch op {
	case 1:
		value, tail := rest.cutString()
		if flags := tail[len(tail)-4:].int32At(0); flags&zk.FlagSequence != 0 {
			name = fmt.Sprintf("%s%010d", name, f.next)
			f.next++
		}
		f.data[name] = value
		answer.string(name)
	case 9:
		answer.string(name)
	case 2, 4, 12:
		if !found {
			return -101, nil
		}
		switch op {
		case 2:
			delete(f.data, name)
			f.fire(name, zk.EventNodeDeleted)
		case 4:
			answer.string(f.data[name]).bytes(make([]byte, 68))
		case 12:
			f.list(&answer, name)
		}
		if op != 2 && rest[0] != 0 {
			f.watches[name] = append(f.watches[name], conn)
		}
	default:
		return -6, nil
	}
	return 0, answer
}

func (f *fake) list(answer *packet, parent string) {
	var children []string
	for p := range f.data {
		if p != "/" && path.Dir(p) == parent {
			children = append(children, path.Base(p))
		}
	}
	answer.int32(int32(len(children)))
	for _, c := range children {
		answer.string(c)
	}
	answer.bytes(make([]byte, 68))
}

func (f *fake) fire(name string, what zk.EventType) {
	for _, conn := range f.watches[name] {
		var event packet
		event.int32(-1).int64(-1).int32(0).int32(
			int32(what),
		).int32(3).string(name).send(conn)
	}
	delete(f.watches, name)
}

// packet is one in the making, or received: without its length.
type packet []byte

func (p *packet) bytes(b []byte) *packet {
	*p = append(*p, b...)
	return p
}

func (p *packet) int32(v int32) *packet {
	return p.bytes(binary.BigEndian.AppendUint32(nil, uint32(v)))
}

func (p *packet) int64(v int64) *packet {
	return p.bytes(binary.BigEndian.AppendUint64(nil, uint64(v)))
}

func (p *packet) string(s string) *packet {
	return p.int32(int32(len(s))).bytes([]byte(s))
}

func (p packet) int32At(i int) int32 { return int32(binary.BigEndian.Uint32(p[i:])) }

func (p packet) cutString() (s string, rest packet) {
	end := 4 + int(max(p.int32At(0), 0)) // -1: nil
	return string(p[4:end]), p[end:]
}

// send ignores a failure: the client is gone then, which the next receive shows.
func (p packet) send(conn net.Conn) {
	_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(p))), p...))
}

// receive returns nil when the client is gone.
func receive(conn net.Conn) packet {
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil
	}
	body := make([]byte, binary.BigEndian.Uint32(head))
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil
	}
	return body
}

// hello is a connect request.
func hello() *packet {
	return new(packet).int32(0).int64(0).int32(4000).int64(0).string("")
}

// provider is a host provider that looks nothing up, and so runs in a bubble. Its
// retryStart makes the client pause for a second between two dials, as the client's own
// does with one address.
type provider struct{ tried bool }

func (p *provider) Init([]string) error { return nil }
func (p *provider) Len() int            { return 1 }
func (p *provider) Connected()          { p.tried = false }
func (p *provider) Next() (string, bool) {
	again := p.tried
	p.tried = true
	return "fake:2181", again
}

// quiet is a zk.Logger.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// connect returns once there is a session. From then on the channel has an element for
// each time that there is one again; the client's own event channel would drop it where
// the test is slow.
func connect(
	tb testing.TB, addr string, timeout time.Duration, dial zk.Dialer,
	hosts zk.HostProvider,
) (*zk.Conn, <-chan struct{}) {
	tb.Helper()
	sessions := make(chan struct{}, 100)
	told := func(e zk.Event) {
		if e.State == zk.StateHasSession {
			sessions <- struct{}{}
		}
	}
	conn, _, err := zk.Connect([]string{addr}, timeout,
		zk.WithDialer(dial), zk.WithHostProvider(hosts),
		zk.WithLogger(quiet{}), zk.WithEventCallback(told))
	if err != nil {
		tb.Fatal(err)
	}
	<-sessions
	return conn, sessions
}
