package wiretap

import "time"

// direction is one way along a connection.
type direction int

const (
	toServer direction = iota
	toClient
)

// Cut closes all present connections, for both sides at once; what was under way is lost.
// A client then reconnects. Until it has noticed, its calls end with the raw error of the
// failed write, as they do on TCP.
func (t *Tap) Cut() {
	t.mu.Lock()
	wires := make([]*wire, 0, len(t.wires))
	for w := range t.wires {
		wires = append(wires, w)
	}
	t.mu.Unlock()
	for _, w := range wires {
		w.cut()
	}
}

// Partition makes all connections silent, both ways, and dials hang, until [Tap.Heal]. As
// on a TCP connection, packets (and the server's close) are held, not lost: those of a
// connection that is still open by then arrive late. A packet that is being delivered at
// the moment of the call, such as the one a hook makes the call for, may still arrive.
func (t *Tap) Partition() { t.block(toServer, toClient) }

// PartitionOut is [Tap.Partition] for what clients send: the server hears nothing of
// them, while its replies arrive.
func (t *Tap) PartitionOut() { t.block(toServer) }

// PartitionIn is [Tap.Partition] for what the server sends: requests arrive and are done,
// nothing comes back.
func (t *Tap) PartitionIn() { t.block(toClient) }

// Heal ends all partitions.
func (t *Tap) Heal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for d, blocked := range t.blocked {
		if blocked != nil {
			close(blocked)
			t.blocked[d] = nil
		}
	}
}

func (t *Tap) block(ds ...direction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range ds {
		if t.blocked[d] == nil {
			t.blocked[d] = make(chan struct{})
		}
	}
}

// blockedNow returns nil, or what is closed when the partition in this direction ends.
func (t *Tap) blockedNow(d direction) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.blocked[d]
}

// Refuse makes dials fail at once, as where nothing listens, or lets them through again;
// present connections stay. A dial that hangs in a partition is told when that heals.
func (t *Tap) Refuse(refuse bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refuse = refuse
}

// Delay makes each packet that is sent from now on take d, in each direction, so that an
// answer takes 2d and more. Packets keep their order and do not wait for one another:
// several sent at once arrive at once. Dialling takes no longer.
func (t *Tap) Delay(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delay = d
}

// arrival returns when a packet that came to the tap at this moment is due at its
// receiver.
func (t *Tap) arrival(at time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return at.Add(t.delay)
}
