package wiretap

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// maxFrame is far above what a ZooKeeper server takes (1 MB) or sends; more means that
// this is not its protocol.
const maxFrame = 64 << 20

// wire is one connection through a tap. Two goroutines collect the packets that either
// side sends, two deliver them; all four end with the connection.
type wire struct {
	tap    *Tap
	number int
	client net.Conn // the tap's end of the pipe
	server net.Conn
	over   chan struct{} // closed by cut
	once   sync.Once     // guards over
	lines  [2]*line      // per direction

	// mu guards the fields below.
	mu sync.Mutex
	// Delivered or to be answered by the tap, and not yet answered, in the order sent.
	calls []*call
	// The client gets nothing any more: the reply to a call with PassAndCut is awaited.
	deaf bool
}

// call is a request whose reply is due.
type call struct {
	request  Packet
	sentence sentence
	forged   bool // the tap's own answer is on its way to the client
}

// parcel is a packet on its way.
type parcel struct {
	frame []byte // with its length in front; nil: the server has closed
	// Of a request; replies are parsed at delivery, when it is known what they answer.
	packet Packet
	due    time.Time
	at     time.Time
	cut    bool // the connection closes behind it
}

// connect sets the relay up and returns the client's end.
func (t *Tap) connect(server net.Conn) net.Conn {
	end, ours := net.Pipe()
	w := &wire{
		tap: t, client: ours, server: server, over: make(chan struct{}),
		lines: [2]*line{newLine(), newLine()},
	}
	t.mu.Lock()
	t.dialled++
	w.number = t.dialled
	t.wires[w] = struct{}{}
	t.mu.Unlock()
	go w.collectRequests()
	go w.collectReplies()
	go w.deliver(toServer, w.deliverRequest)
	go w.deliver(toClient, w.deliverReply)
	return clientConn{Conn: end, server: server}
}

// clientConn is the end of the pipe that the client holds. Its addresses are those of the
// connection to the server.
type clientConn struct {
	net.Conn
	server net.Conn
}

func (c clientConn) LocalAddr() net.Addr  { return c.server.LocalAddr() }
func (c clientConn) RemoteAddr() net.Addr { return c.server.RemoteAddr() }

// cut ends the connection for both sides and makes its goroutines end. It does not wait
// for them, since they call it.
func (w *wire) cut() {
	w.once.Do(func() {
		close(w.over)
		// Both are torn down, whatever state they are in; there is nobody who could use
		// an error.
		_ = w.client.Close()
		_ = w.server.Close()
		w.tap.mu.Lock()
		delete(w.tap.wires, w)
		w.tap.mu.Unlock()
	})
}

func (w *wire) collectRequests() {
	for first := true; ; first = false {
		frame, err := readFrame(w.client)
		if err != nil {
			w.cut() // the client has closed, or does not speak ZooKeeper's protocol
			return
		}
		p := parseRequest(frame, first)
		p.Conn, p.At = w.number, time.Now()
		w.tap.mu.Lock()
		w.tap.requests = append(w.tap.requests, p)
		w.tap.mu.Unlock()
		w.lines[toServer].put(parcel{frame: frame, packet: p, due: w.tap.arrival(p.At)})
	}
}

func (w *wire) collectReplies() {
	for {
		// Nil with an error: delivered as the server's close.
		frame, err := readFrame(w.server)
		at := time.Now()
		w.lines[toClient].put(parcel{frame: frame, at: at, due: w.tap.arrival(at)})
		if err != nil {
			return
		}
	}
}

// deliver hands the packets of one direction to f, each when it is due and may pass,
// until f returns false or the connection is over.
func (w *wire) deliver(d direction, f func(parcel) bool) {
	for {
		p, ok := w.lines[d].take(w.over)
		if !ok || !w.travel(p.due) || !w.awaitPassage(d) || !f(p) {
			return
		}
	}
}

// travel waits until due; false: the connection is over.
func (w *wire) travel(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.over:
		return false
	}
}

// awaitPassage waits while there is a partition; false: the connection is over.
func (w *wire) awaitPassage(d direction) bool {
	for {
		blocked := w.tap.blockedNow(d)
		if blocked == nil {
			return true
		}
		select {
		case <-blocked:
		case <-w.over:
			return false
		}
	}
}

// hold waits for the release of a packet that was told to wait; false: the connection is
// over.
func (w *wire) hold(d direction, s sentence) bool {
	s.done()
	select {
	case <-s.release:
		return w.awaitPassage(d)
	case <-w.over:
		return false
	}
}

// deliverRequest returns false if no request behind this one may reach the server.
func (w *wire) deliverRequest(p parcel) bool {
	s := w.tap.judge(toServer, Packet{}, p.packet)
	switch s.fate {
	case drop:
		s.done()
		return true
	case cut:
		w.cut()
		s.done()
		return false
	case answer, answerAndCut:
		w.expect(&call{request: p.packet, sentence: s})
		w.forgeDueAnswer()
		return s.fate == answer && p.packet.Op != Connect
	case hold:
		if !w.hold(toServer, s) {
			return false
		}
		s = sentence{done: func() {}}
	}
	w.expect(&call{request: p.packet, sentence: s})
	if !w.send(w.server, w.unshift(p.frame)) {
		return false
	}
	if s.fate == passAndCut {
		return false
	}
	s.done()
	return true
}

// expect notes that a reply is due. With PassAndCut the client gets nothing from then on.
func (w *wire) expect(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
	w.deaf = w.deaf || c.sentence.fate == passAndCut
}

// forgeDueAnswer sends the tap's own answer to the oldest unanswered call, if it is one
// for the tap to answer.
func (w *wire) forgeDueAnswer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) == 0 {
		return
	}
	c := w.calls[0]
	if c.forged || c.sentence.fate != answer && c.sentence.fate != answerAndCut {
		return
	}
	c.forged = true
	p := parcel{
		frame: errorReply(c.request.Xid, c.sentence.code), at: time.Now(),
		cut: c.sentence.fate == answerAndCut,
	}
	if c.request.Op == Connect {
		p.frame, p.cut = expiredReply(), true
	}
	p.due = w.tap.arrival(p.at)
	w.lines[toClient].put(p)
}

// deliverReply returns false once the connection is over.
func (w *wire) deliverReply(p parcel) bool {
	if p.frame == nil {
		w.cut()
		return false
	}
	c, deaf := w.answered(p.frame)
	if deaf {
		if c.sentence.fate == passAndCut {
			w.cut()
			c.sentence.done()
			return false
		}
		return true
	}
	frame := w.shift(p.frame)
	reply := parseReply(frame, c.request)
	reply.Conn, reply.At = w.number, p.at
	if reply.Op == Event {
		w.tap.mu.Lock()
		w.tap.events++
		w.tap.mu.Unlock()
	}
	if !w.carryOut(w.tap.judge(toClient, c.request, reply), c, reply, frame) {
		return false
	}
	if p.cut {
		w.cut()
	}
	if c.forged {
		c.sentence.done()
	}
	w.forgeDueAnswer()
	return !p.cut
}

// carryOut does with a reply what it was sentenced to; false: the connection is over.
func (w *wire) carryOut(s sentence, c *call, reply Packet, frame []byte) bool {
	last := s.fate == cut || s.fate == passAndCut || s.fate == answerAndCut
	switch s.fate {
	case hold:
		if !w.hold(toClient, s) {
			return false
		}
		s.done = func() {}
	case answer, answerAndCut:
		frame = errorReply(reply.Xid, s.code)
		if c.request.Op == Connect {
			frame, last = expiredReply(), true
		}
		if reply.Op == Event {
			frame = nil
		}
	case drop, cut:
		frame = nil
	}
	if frame != nil && !w.send(w.client, frame) {
		return false
	}
	if last {
		w.cut()
	}
	s.done()
	return !last
}

// answered takes the call that a frame from the server answers off the list; for an event
// it is an empty one. Replies come in the order of the requests, but for that to an auth
// request.
func (w *wire) answered(frame []byte) (c *call, deaf bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.calls, func(c *call) bool {
		return c.request.Op == Connect || c.request.Xid == body(frame).int32()
	})
	if i < 0 {
		return &call{}, w.deaf
	}
	c = w.calls[i]
	w.calls = slices.Delete(w.calls, i, i+1)
	return c, w.deaf
}

// send hands a frame over; false: the connection is over.
func (w *wire) send(to net.Conn, frame []byte) bool {
	if _, err := to.Write(frame); err != nil {
		w.cut()
		return false
	}
	return true
}

// readFrame reads one packet, its length in front.
func readFrame(from net.Conn) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n > maxFrame {
		return nil, fmt.Errorf("wiretap: a packet of %d bytes", n)
	}
	frame := append(head, make([]byte, n)...)
	if _, err := io.ReadFull(from, frame[4:]); err != nil {
		return nil, err
	}
	return frame, nil
}
