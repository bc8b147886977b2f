// Package wiretap taps the line between a ZooKeeper client and its servers, for tests: it
// sees every packet in both directions, counts them, and lets one fault happen at exactly
// one packet.
//
// A [Tap] is a [zk.Dialer]. Each connection it dials is a relay: the client holds one end
// of a [net.Pipe], the tap the other end and the connection to the server, and what is
// read on one side is handed on, packet by packet, to the other. Deadlines of the client
// hold as on any net.Conn, and a line that is held back is as silent as a broken one.
//
// A tap runs in a testing/synctest bubble, if it was made there and its dialer's
// connections are the bubble's own (net.Pipe, not TCP): all its goroutines wait on
// channels and timers only.
//
// Who closes what: the client's Close ends its connection at once, both sides of it and
// all its goroutines; what was under way is lost. The server's close reaches the client
// behind the packets that the server sent before, so it is held back by a partition too;
// [Tap.Cut] ends such a connection. Nothing else needs closing.
package wiretap

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Tap sees and tampers with all connections dialled through it. It may serve several
// clients; then what it counts and does concerns all of them. Its methods may be called
// at any time, also from within a hook.
type Tap struct {
	dial zk.Dialer // set by New, read only after

	// mu guards all below. It is held neither while a hook runs nor while anything is
	// read or written.
	mu       sync.Mutex
	wires    map[*wire]struct{} // the present connections
	dialled  int                // connections so far
	requests []Packet           // since Reset, pings and connects included
	events   int                // since Reset
	rules    [2][]*rule         // per direction, in the order in which they were set

	onRequest func(request Packet) Verdict
	onReply   func(request, reply Packet) Verdict

	refuse  bool
	delay   time.Duration
	blocked [2]chan struct{} // per direction: nil, or closed by Heal
	shift   int32
}

var _ zk.Dialer = (*Tap)(nil).Dial

// New makes a tap whose connections are dialled with dial; nil stands for
// [net.DialTimeout].
func New(dial zk.Dialer) *Tap {
	if dial == nil {
		dial = net.DialTimeout
	}
	return &Tap{dial: dial, wires: map[*wire]struct{}{}}
}

// Dial is the [zk.Dialer]. During a partition, of whichever direction, it hangs until it
// is healed or timeout is over.
func (t *Tap) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	start := time.Now()
	if err := t.awaitRoute(timeout); err != nil {
		return nil, &net.OpError{
			Op: "dial", Net: network, Addr: target{network, address}, Err: err,
		}
	}
	if timeout > 0 {
		// A timeout of exactly 0 would mean "none" to net.DialTimeout.
		timeout = max(timeout-time.Since(start), 1)
	}
	server, err := t.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	return t.connect(server), nil
}

// target is the address of a dial that failed before anything was resolved.
type target struct{ network, address string }

func (a target) Network() string { return a.network }
func (a target) String() string  { return a.address }

// awaitRoute returns as soon as a dial may go ahead; a timeout of 0 or less is none.
func (t *Tap) awaitRoute(timeout time.Duration) error {
	var expired <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	for {
		t.mu.Lock()
		refuse, blocked := t.refuse, t.blocked[toServer]
		if blocked == nil {
			blocked = t.blocked[toClient]
		}
		t.mu.Unlock()
		switch {
		case refuse:
			return syscall.ECONNREFUSED
		case blocked == nil:
			return nil
		}
		select {
		case <-blocked:
		case <-expired:
			return os.ErrDeadlineExceeded
		}
	}
}

// Requests returns what clients have sent since the last Reset, in that order, pings and
// connects left out. A request is listed as soon as the client has handed it to its
// connection, whatever becomes of it then.
func (t *Tap) Requests() []Packet {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sent []Packet
	for _, p := range t.requests {
		if p.Op != Ping && p.Op != Connect {
			sent = append(sent, p)
		}
	}
	return sent
}

// Ops returns the operations of [Tap.Requests].
func (t *Tap) Ops() []Op {
	var ops []Op
	for _, p := range t.Requests() {
		ops = append(ops, p.Op)
	}
	return ops
}

// Count returns how many requests with this operation clients have sent since the last
// Reset, pings and connects included, or, for [Event], how many watch events have come
// from the server.
func (t *Tap) Count(op Op) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if op == Event {
		return t.events
	}
	n := 0
	for _, p := range t.requests {
		if p.Op == op {
			n++
		}
	}
	return n
}

// Reset forgets what was listed and counted. Hooks, rules and faults stay.
func (t *Tap) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests, t.events = nil, 0
}
