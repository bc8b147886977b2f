package wiretap

import "sync"

// line is an unbounded queue of parcels for one taker. It has no bound because the sender
// must never wait for the receiver: a packet is under way from the moment at which it was
// sent.
type line struct {
	mu      sync.Mutex
	parcels []parcel
	more    chan struct{} // holds a token if there may be something to take
}

func newLine() *line { return &line{more: make(chan struct{}, 1)} }

func (l *line) put(p parcel) {
	l.mu.Lock()
	l.parcels = append(l.parcels, p)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
}

// take waits for the next parcel; false: over was closed.
func (l *line) take(over <-chan struct{}) (parcel, bool) {
	for {
		select {
		case <-over:
			return parcel{}, false
		default:
		}
		l.mu.Lock()
		if len(l.parcels) > 0 {
			p := l.parcels[0]
			l.parcels = l.parcels[1:]
			l.mu.Unlock()
			return p, true
		}
		l.mu.Unlock()
		select {
		case <-l.more:
		case <-over:
			return parcel{}, false
		}
	}
}
