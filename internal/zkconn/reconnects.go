package zkconn

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// reconnects tells of each time that the connection was away and is back. It is guarded
// by Conn.mu.
//
// A connection can have been away between two looks at its state, with nothing under way
// that could tell; only the handshake does. The client sets its watches again, and asks
// for what was missed: a deletion always shows, since the server looks whether the znode
// is there. A change of data or of children shows if it is newer than the last answer
// that the client had when it set them, and that could be one to a request which it had
// kept, and sent before. So everybody who waits had better look. A plain *zk.Conn does
// not tell of handshakes, but which server it uses: after the loss of one it goes on to
// the next, and pauses for a second once it has tried all. Only if it comes back to the
// same one between two looks, over others that it has lost as well, nobody notices, and
// those who wait look at their next poll.
type reconnects struct {
	seen  connState     // at the last look
	lost  bool          // a request was lost with its connection since
	blind bool          // or nobody has looked, and no handshake tells: it counts as one
	next  chan struct{} // closed, and replaced, at each reconnect
	epoch uint64        // how often that was
	times int           // how many there were, without those that only count as one
}

// A connState is what a connection shows at one time.
type connState struct {
	state     zk.State
	session   int64
	handshake time.Time // of the session; zero if that is not known
	server    string    // that it uses, or has used last; "" if that is not known
}

func (s connState) connected() bool { return s.state == zk.StateHasSession }

// observe compares what is seen with the last observe.
func (r *reconnects) observe(now connState) {
	now = r.after(now)
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

// after is what is known by now: the last handshake is remembered while none is told, and
// the last server while there is none.
func (r *reconnects) after(now connState) connState {
	if now.handshake.IsZero() {
		now.handshake = r.seen.handshake
	}
	if now.server == "" {
		now.server = r.seen.server
	}
	return now
}
