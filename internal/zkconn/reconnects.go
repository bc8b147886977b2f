package zkconn

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// reconnects count how often the connection was away and is back. They are guarded by
// Conn.mu.
//
// A connection can have been away between two looks at its state, while no request was
// under way that could tell; only the handshake does. When it is back, the client sets
// its watches again, and the server sends what was missed. It always reports a deletion,
// since it looks whether the znode is there. It reports a change of data or of children
// if that is newer than the last answer that the client had when it set the watches. That
// may have been the answer to a request that was sent first over the new connection. So
// everybody who waits looks again.
//
// A plain *zk.Conn does not tell of handshakes, but of the server that it uses: after the
// loss of one it goes on to the next, and after a round of all it pauses for a second.
// Only if it comes back to the same server between two looks, over others that it has
// lost as well, nobody notices; nor through a wrapper that hides the server. Then those
// who wait, and those who hold, look at their next poll.
type reconnects struct {
	seen  connState     // at the last look
	lost  bool          // a request was lost with its connection since
	blind bool          // nobody has looked since, and no handshake tells: counts as away
	next  chan struct{} // closed, and replaced, at each reconnect
	epoch uint64        // how many there were
	times int           // like epoch, but without those that were not seen (blind)
}

// A connState is what a connection shows at one time.
type connState struct {
	state     zk.State
	session   int64
	handshake time.Time // of the session; zero if that is not known
	server    string    // that it uses, or has used last; "" if that is not known
}

func (s connState) connected() bool { return s.state == zk.StateHasSession }

// observe compares what is seen with the last look.
func (r *reconnects) observe(now connState) {
	// While no handshake is known, or there is no server, the last one is remembered: its
	// successor shows that the connection was away.
	if now.handshake.IsZero() {
		now.handshake = r.seen.handshake
	}
	if now.server == "" {
		now.server = r.seen.server
	}
	away := !r.seen.connected() || r.lost
	back := away && now.connected() || now.session != r.seen.session ||
		!now.handshake.Equal(r.seen.handshake) || now.server != r.seen.server
	if back {
		r.times++
	}
	if back || r.blind && now.connected() {
		close(r.next)
		r.next = make(chan struct{})
		r.epoch++
	}
	r.seen, r.lost, r.blind = now, false, false
}
