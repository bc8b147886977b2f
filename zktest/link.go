package zktest

import (
	"math/rand/v2"
	"net"
	"slices"
	"syscall"
	"time"
)

// A Direction of a link.
type Direction int

// Both is for faults that hit a link either way.
const (
	ToServer Direction = 1 << iota
	ToClient
	Both = ToServer | ToClient
)

// An Op is a kind of request, for faults that hit one of them.
type Op int32

// The requests that can be lost, in all the forms that the protocol has for one: OpCreate
// is create, create2 and createTTL, OpChildren both kinds of get children, OpSetWatches
// both of set watches. Any stands for every request, pings included.
const (
	Any               Op = 0
	OpCreate             = Op(opCreate)
	OpCreateContainer    = Op(opCreateContainer)
	OpDelete             = Op(opDelete)
	OpExists             = Op(opExists)
	OpGet                = Op(opGetData)
	OpSet                = Op(opSetData)
	OpGetACL             = Op(opGetACL)
	OpSetACL             = Op(opSetACL)
	OpChildren           = Op(opGetChildren2)
	OpSync               = Op(opSync)
	OpAddWatch           = Op(opAddWatch)
	OpCheckWatches       = Op(opCheckWatches)
	OpRemoveWatches      = Op(opRemoveWatches)
	OpMulti              = Op(opMulti)
	OpAuth               = Op(opSetAuth)
	OpSetWatches         = Op(opSetWatches)
	OpPing               = Op(opPing)
	OpClose              = Op(opClose)
)

// kind is the Op that an opcode is a form of.
func (o opcode) kind() Op {
	switch o {
	case opCreate2, opCreateTTL:
		return OpCreate
	case opGetChildren:
		return OpChildren
	case opSetWatches2:
		return OpSetWatches
	default:
		return Op(o)
	}
}

// A Link is the network between one client and all servers. Faults on it affect only its
// connections. The methods are safe for concurrent use.
type Link struct {
	cluster *Cluster

	// All below is guarded by the Cluster's mutex.

	cut         bool
	frozen      bool
	stalled     Direction
	least, most time.Duration
	random      *rand.Rand
	lose        map[Op]verdict
	hostile     map[Op]HostileReply
	// Closed, and replaced, when a dial that waits has to look again.
	changed chan struct{}
}

// A verdict is what becomes of a request.
type verdict int

const (
	pass verdict = iota
	loseRequest
	loseReply
	throttle
)

// Link returns the link of that name, which it creates if there is none. Clients that
// connect over TCP, and those that use Cluster.Dial, share the link "".
func (c *Cluster) Link(name string) *Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.linkLocked(name)
}

func (c *Cluster) linkLocked(name string) *Link {
	l := c.links[name]
	if l == nil {
		l = &Link{cluster: c, lose: map[Op]verdict{}, changed: make(chan struct{})}
		l.hostile = map[Op]HostileReply{}
		l.random = c.random("link " + name)
		c.links[name] = l
	}
	return l
}

// Dial is a zk.Dialer. It gives one end of a pipe, so that a client may run in a
// testing/synctest bubble. address is one of Cluster.Names or Cluster.Addrs.
func (l *Link) Dial(network, address string, timeout time.Duration) (net.Conn, error) {
	refused := func(err error) (net.Conn, error) {
		return nil, &net.OpError{
			Op: "dial", Net: network, Addr: pipeAddr(address), Err: err,
		}
	}
	s := l.cluster.serverAt(address)
	if s == nil {
		return refused(&net.AddrError{Err: "no such server", Addr: address})
	}
	ended := time.After(timeout)
	for {
		l.cluster.mu.Lock()
		if l.cut || !s.up || l.cluster.closed {
			l.cluster.mu.Unlock()
			return refused(syscall.ECONNREFUSED)
		}
		if l.stalled == 0 && !l.frozen {
			theirs, ours := net.Pipe()
			l.acceptLocked(s, ours)
			l.cluster.mu.Unlock()
			return clientEnd{Conn: theirs, addr: pipeAddr(address)}, nil
		}
		changed := l.changed
		l.cluster.mu.Unlock()
		select {
		case <-changed:
		case <-ended:
			return refused(syscall.ETIMEDOUT)
		}
	}
}

// clientEnd is a pipe that knows which server is at its other end.
type clientEnd struct {
	net.Conn
	addr pipeAddr
}

func (c clientEnd) RemoteAddr() net.Addr { return c.addr }

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return string(a) }

// Cut breaks the connections of the link, with all that was in flight, and rejects new
// ones until Heal.
func (l *Link) Cut() {
	l.change(func() {
		l.cut = true
		l.breakLocked()
	})
}

// Reset breaks the connections of the link once.
func (l *Link) Reset() { l.change(l.breakLocked) }

// Stall lets nothing through in a direction until Heal: the connections stay open, and a
// new one cannot be made. What is sent meanwhile arrives after Heal if the client has
// kept the connection, as on a TCP connection over a broken path.
func (l *Link) Stall(d Direction) { l.change(func() { l.stalled |= d }) }

// Heal ends Cut and Stall.
func (l *Link) Heal() { l.change(func() { l.cut, l.stalled = false, 0 }) }

// Freeze simulates for the servers that the client's process is suspended (SIGSTOP, a
// paused VM): it sends and receives nothing, and its connections stay open. Its
// goroutines continue; the caller must stop what they do.
func (l *Link) Freeze() { l.change(func() { l.frozen = true }) }

// Thaw ends Freeze.
func (l *Link) Thaw() { l.change(func() { l.frozen = false }) }

// Delay makes every packet take between least and most, each way. Packets never overtake
// each other. The durations are drawn at random, from the seed of the Cluster.
func (l *Link) Delay(least, most time.Duration) {
	l.change(func() { l.least, l.most = least, most })
}

// LoseRequest breaks the connection instead of delivering the next such request, which no
// server sees.
func (l *Link) LoseRequest(op Op) { l.change(func() { l.lose[op] = loseRequest }) }

// LoseReply breaks the connection instead of answering the next such request, which has
// taken effect by then.
func (l *Link) LoseReply(op Op) { l.change(func() { l.lose[op] = loseReply }) }

// Throttle makes the server answer the next such request by itself with -127 (throttled),
// as a server does that has kept it in its queue for too long (throttledOpWaitTime). The
// request has no effect, and the leader does not hear of it. Pings, closes and auth
// packets are never throttled (Request.isThrottlable).
func (l *Link) Throttle(op Op) { l.change(func() { l.lose[op] = throttle }) }

// Spare cancels LoseRequest, LoseReply, Throttle and Hostile if they have not taken
// effect yet.
func (l *Link) Spare() {
	l.change(func() {
		clear(l.lose)
		clear(l.hostile)
	})
}

func (l *Link) change(f func()) {
	l.cluster.mu.Lock()
	defer l.cluster.mu.Unlock()
	f()
	l.cluster.pumpLocked()
}

func (l *Link) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Link) breakLocked() {
	for _, s := range l.cluster.servers {
		for _, c := range slices.Clone(s.conns) {
			if c.link == l {
				c.dropLocked()
			}
		}
	}
}

func (l *Link) heldLocked(d Direction) bool { return l.frozen || l.stalled&d != 0 }

func (l *Link) delayLocked() time.Duration {
	if l.most <= l.least {
		return l.least
	}
	return l.least + time.Duration(l.random.Int64N(int64(l.most-l.least)))
}

func (o opcode) throttlable() bool {
	return o != opPing && o != opClose && o != opSetAuth && o != opSASL
}

func (l *Link) verdictLocked(op opcode) verdict {
	for _, o := range []Op{op.kind(), Any} {
		if v := l.lose[o]; v != pass && (v != throttle || op.throttlable()) {
			delete(l.lose, o)
			return v
		}
	}
	return pass
}
