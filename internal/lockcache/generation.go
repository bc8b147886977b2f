package lockcache

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// followed lists the directory and watches it.
func (g *generation) followed() (followed bool, left <-chan zk.Event, err error) {
	n := g.node
	children, _, left, err := g.entry.key.conn.WatchChildren(n.Ended(), g.q.Dir)
	if err != nil {
		return true, nil, err
	}
	// Among: a list of the queue has reported what should not be there.
	queue, own := g.q.Observed().Among(children), n.Name()
	for self, m := range queue {
		if m.Text == own {
			return g.q.Excludes.Follows(m, queue[self+1:]), left, nil
		}
	}
	return true, left, nil // it is gone, which the watch on it tells
}

func (g *generation) isContended() bool {
	g.entry.mu.Lock()
	defer g.entry.mu.Unlock()
	return g.contended
}

// What follows is called with entry.mu held.

// room is for how many more owners, one after the other, the generation is good.
func (g *generation) room() int {
	const noBound = int(^uint(0) >> 1)
	switch {
	case g.closed:
		return 0
	case !g.contended:
		return noBound
	case g.entry.together:
		return 0
	}
	return max(0, g.policy.MaxHandovers-g.handovers)
}

// isFree tells whether one more owner may be admitted now.
func (g *generation) isFree() bool {
	return (g.users == 0 || g.entry.together) && g.room() > 0 && !g.mustLook()
}

// mustLook tells whether it has to be known first who stands behind.
func (g *generation) mustLook() bool {
	return g.doubtful && !g.contended && g.handovers >= g.policy.MaxHandovers
}

// hurry ends the pause before the next look.
func (g *generation) hurry() {
	select {
	case g.look <- struct{}{}:
	default:
	}
}

// counts tells whether an owner that is admitted now may overtake somebody.
func (g *generation) counts() bool { return g.contended || g.doubtful }

// isOver tells of a generation that nobody uses whether it is to be given up.
func (g *generation) isOver() bool {
	return g.closed || g.contended || time.Since(g.idleSince) >= g.policy.Idle
}

// leaveOne takes off a user. unsure: nobody else may have the lock before the znode is
// gone, or is known to be there.
func (g *generation) leaveOne(unsure bool) {
	g.closed = g.closed || unsure
	if g.users--; g.users == 0 {
		g.idleSince = time.Now()
	}
}

// leave deletes the znode.
func (g *generation) leave() {
	g.stopIdle()
	g.left = g.node.StartLeaving()
}

func (g *generation) stopIdle() {
	if g.idle != nil {
		g.idle.Stop()
		g.idle = nil
	}
}
