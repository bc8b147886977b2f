package zktest

import (
	"sync"
	"time"
)

// A lane carries things one way, in order: packets between a client and a server,
// transactions between a leader and a follower. Each arrives after the delay it was sent
// with, though never before one that was sent earlier. A lane that is held keeps all it
// has until it is pumped again, as TCP does on a broken path: nothing in the middle gets
// lost.
//
// It has no goroutine. What arrives runs under the Cluster's mutex, in push itself where
// there is no delay.
type lane struct {
	mu      *sync.Mutex // the Cluster's; all methods are called with it held
	held    func() bool
	queue   []parcel
	timer   *time.Timer
	pumping bool
	closed  bool
}

// A parcel is one thing under way.
type parcel struct {
	due     time.Time
	deliver func()
}

func newLane(mu *sync.Mutex, held func() bool) *lane { return &lane{mu: mu, held: held} }

// push sends something that takes delay to arrive.
func (l *lane) push(delay time.Duration, deliver func()) {
	if l.closed {
		return
	}
	l.queue = append(l.queue, parcel{due: time.Now().Add(delay), deliver: deliver})
	l.pump()
}

// pump delivers what is due. A parcel may push another, and close the lane.
func (l *lane) pump() {
	if l.pumping {
		return
	}
	l.pumping = true
	for len(l.queue) > 0 && !l.held() {
		if wait := time.Until(l.queue[0].due); wait > 0 {
			l.wake(wait)
			break
		}
		next := l.queue[0]
		l.queue = l.queue[1:]
		next.deliver()
	}
	l.pumping = false
}

func (l *lane) wake(wait time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.timer = time.AfterFunc(wait, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.pump()
	})
}

// clear loses what is under way.
func (l *lane) clear() { l.queue = nil }

// close loses what is under way, and all that is pushed from now on.
func (l *lane) close() {
	l.closed = true
	l.clear()
	if l.timer != nil {
		l.timer.Stop()
	}
}
