package zktest_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A client is a role with go-zookeeper's client.
type client struct {
	p       *player
	name    string
	conn    *zk.Conn // nil until the first step, and after a close
	ended   <-chan zk.Event
	states  chan zk.State
	watches []watch // that have not fired

	mu     sync.Mutex // guards the fields below
	events []string
	lines  []*line       // since it was opened
	up     chan struct{} // closed while the client may dial
}

type watch struct {
	label string
	fires <-chan zk.Event
}

// verbs are the steps of a client that has a session.
var verbs = map[string]func(*client, *arguments) string{
	"create":    (*client).create,
	"container": (*client).container,
	"ttl":       (*client).ttl,
	"set": func(c *client, a *arguments) string {
		stat, err := c.conn.Set(a.path(), a.data(), int32(a.intOr(-1)))
		return c.answer(err, func() string { return c.p.stat(stat) })
	},
	"delete": func(c *client, a *arguments) string {
		return c.answer(c.conn.Delete(a.path(), int32(a.intOr(-1))), nil)
	},
	"sync": func(c *client, a *arguments) string {
		path, err := c.conn.Sync(a.path())
		return c.answer(err, func() string { return path })
	},
	"get": func(c *client, a *arguments) string {
		data, stat, err := c.conn.Get(a.path())
		return c.answer(err, func() string { return text(data) + " " + c.p.stat(stat) })
	},
	"exists": func(c *client, a *arguments) string {
		found, stat, err := c.conn.Exists(a.path())
		return c.answer(err, func() string { return c.existence(found, stat) })
	},
	"children": func(c *client, a *arguments) string {
		children, stat, err := c.conn.Children(a.path())
		return c.answer(err, func() string {
			return list(children) + " " + c.p.stat(stat)
		})
	},
	"getW":      (*client).getW,
	"existsW":   (*client).existsW,
	"childrenW": (*client).childrenW,
	"getACL": func(c *client, a *arguments) string {
		acl, stat, err := c.conn.GetACL(a.path())
		return c.answer(err, func() string { return acls(acl) + " " + c.p.stat(stat) })
	},
	"setACL": func(c *client, a *arguments) string {
		stat, err := c.conn.SetACL(a.path(), a.acl(), int32(a.intOr(-1)))
		return c.answer(err, func() string { return c.p.stat(stat) })
	},
	"auth": func(c *client, a *arguments) string {
		return c.answer(c.conn.AddAuth(a.next(), []byte(a.next())), nil)
	},
	"multi":  (*client).multi,
	"gone":   (*client).gone,
	"down":   func(c *client, _ *arguments) string { return c.down() },
	"up":     func(c *client, _ *arguments) string { return c.goUp() },
	"expire": func(c *client, _ *arguments) string { return c.expire() },
}

func (c *client) do(s step) string {
	a := &arguments{base: c.p.base, left: s.args}
	switch s.verb {
	case "open":
		return c.open(time.Duration(a.intOr(usual.Milliseconds())) * time.Millisecond)
	case "close":
		c.end()
		return "closed"
	}
	verb, ok := verbs[s.verb]
	if !ok {
		panic("BUG: no such step: " + s.line)
	}
	if c.conn == nil {
		if opened := c.open(usual); !strings.HasPrefix(opened, "session") {
			return opened
		}
	}
	return verb(c, a)
}

func (c *client) answer(err error, result func() string) string {
	switch {
	case err != nil:
		return c.p.text(strings.TrimPrefix(err.Error(), "zk: "))
	case result == nil:
		return "ok"
	}
	return c.p.text(result())
}

func (c *client) open(timeout time.Duration) string {
	c.up = make(chan struct{})
	close(c.up)
	c.states = make(chan zk.State, 1000)
	c.lines = nil
	var err error
	c.conn, c.ended, err = zk.Connect([]string{
		c.p.addr,
	}, timeout, zk.WithDialer(c.dial), zk.WithHostProvider(&only{addr: c.p.addr}),
		zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithEventCallback(c.event))
	if err != nil {
		return err.Error()
	}
	return c.await(zk.StateHasSession)
}

// dial makes a connection as soon as the client may have one.
func (c *client) dial(string, string, time.Duration) (net.Conn, error) {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	<-up
	conn, err := c.p.dial()
	if err != nil {
		return nil, err
	}
	l := &line{Conn: conn, restored: make(chan struct{})}
	c.mu.Lock()
	c.lines = append(c.lines, l)
	c.mu.Unlock()
	return l, nil
}

// event sees what the server sends in the order in which it comes, which the channels of
// single watches do not tell.
func (c *client) event(e zk.Event) {
	switch {
	case e.Type == zk.EventSession:
		select {
		case c.states <- e.State:
		default: // a server that is dead makes any number of them
		}
	case e.Err == nil: // else it is the client that tells its watchers to give up
		c.mu.Lock()
		c.events = append(
			c.events, c.p.text(fmt.Sprintf("%v %s %v", e.Type, e.Path, e.State)),
		)
		c.mu.Unlock()
	}
}

func (c *client) await(want zk.State) string {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	seen := []string{}
	for {
		select {
		case got := <-c.states:
			if got == zk.StateExpired {
				seen = append(seen, " after the end of the last one")
			}
			if got != want {
				continue
			}
			if want != zk.StateHasSession {
				return got.String()
			}
			// Only now the client may come to set its watches again. If it does so behind
			// later steps, or even with the next connection, these set watches, too. In a
			// bubble it has come to it after this; a real client most likely has.
			time.Sleep(time.Millisecond)
			g := c.current().granted()
			return fmt.Sprintf(
				"session %s of %d ms%s", c.p.granted(c.name, g), g.timeout,
				strings.Join(seen, ""),
			)
		case <-timer.C:
			return "no " + want.String()
		}
	}
}

// current is the newest connection.
func (c *client) current() *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lines[len(c.lines)-1]
}

// down breaks the connection, and lets the client have no other until up.
func (c *client) down() string {
	for len(c.states) > 0 {
		<-c.states
	}
	c.mu.Lock()
	c.up = make(chan struct{})
	c.lines[len(c.lines)-1].Close()
	c.mu.Unlock()
	return c.await(zk.StateDisconnected)
}

func (c *client) goUp() string {
	last := c.conn.SessionID()
	close(c.up)
	came := c.await(zk.StateHasSession)
	if len(c.watches) == 0 || c.conn.SessionID() != last {
		return came
	}
	select { // the client sets its watches again
	case <-c.current().restored:
	case <-time.After(patience):
		came += ", but its watches are not set again"
	}
	return came
}

// expire has the server end the session as it would after a long silence: by way of a
// second connection that closes it.
func (c *client) expire() string {
	down := c.down()
	ghost := &raw{p: c.p, name: "ghost"}
	if err := ghost.takeOver(c.p.live[c.conn.SessionID()]); err != nil {
		return err.Error()
	}
	return down + ", then " + c.goUp()
}

// arrived returns the events in their order, and then which watches of this client they
// have set off.
func (c *client) arrived() []string {
	if c.conn == nil {
		return nil
	}
	if c.conn.State() == zk.StateHasSession {
		_, _, _ = c.conn.Exists("/") // what matters is what came before the answer
	}
	c.mu.Lock()
	events := c.events
	c.events = nil
	c.mu.Unlock()
	var left []watch
	for _, w := range c.watches {
		select {
		case e, ok := <-w.fires:
			fired := fmt.Sprintf("%s: %v %s", w.label, e.Type, e.Path)
			if !ok || e.Err != nil {
				fired = fmt.Sprintf("%s: %v", w.label, e.Err)
			}
			events = append(events, c.p.text(fired))
		default:
			left = append(left, w)
		}
	}
	c.watches = left
	return events
}

func (c *client) end() {
	if c.conn == nil {
		return
	}
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	select {
	case <-up:
	default:
		c.goUp()
	}
	c.conn.Close()
	for range c.ended {
		continue // until the client is done
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// On a busy machine a session may have run out, and the client have got another one,
	// that no step has seen. It would end, and take a zxid, in the middle of the next
	// script.
	for _, l := range c.lines {
		if g := l.granted(); l.left() {
			delete(c.p.live, g.id)
		} else if g.id != 0 {
			c.p.live[g.id] = g
		}
	}
	c.events = nil // that came together with the end, or did not
	c.conn, c.watches = nil, nil
}

// A line is a client's connection, of which the test sees the handshake and the answer to
// setWatches.
type line struct {
	net.Conn
	restored chan struct{} // closed at the answer to setWatches

	mu         sync.Mutex // guards the fields below
	grant      grant
	setWatches int32 // the xid of setWatches, 0 before
	closing    int32 // the xid of closeSession, 0 before
	closed     bool  // it was answered
	in         []byte
	frames     int
}

const (
	opSetWatches   = 101
	opCloseSession = -11
)

func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	if l.frames > 0 && len(b) >= 12 {
		xid := int32(binary.BigEndian.Uint32(b[4:]))
		opcode := int32(binary.BigEndian.Uint32(b[8:]))
		switch opcode {
		case opSetWatches:
			l.setWatches = xid
		case opCloseSession:
			l.closing = xid
		}
	}
	l.mu.Unlock()
	return l.Conn.Write(b)
}

func (l *line) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in = append(l.in, b[:n]...)
	for len(l.in) >= 4 {
		size := 4 + int(binary.BigEndian.Uint32(l.in))
		if len(l.in) < size {
			break
		}
		l.frame(l.in[4:size])
		l.in = l.in[size:]
	}
	return n, err
}

func (l *line) frame(b []byte) {
	l.frames++
	if l.frames == 1 {
		l.grant = readGrant(b)
		return
	}
	switch xid := int32(binary.BigEndian.Uint32(b)); {
	case xid <= 0:
	case xid == l.setWatches:
		close(l.restored)
	case xid == l.closing:
		l.closed = true
	}
}

func (l *line) granted() grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant
}

// left tells whether the server has answered the end of the session.
func (l *line) left() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}
