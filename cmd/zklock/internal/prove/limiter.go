package prove

import (
	"strings"
	"sync"
	"time"
)

// burst is by how much requests may run ahead: a hand-over consists of a few, and must
// not wait between them, or its time would be the limiter's.
const burst = time.Second

// A limiter keeps requests to a rate: in no second are there more than that, and so about
// half of it on average. What begins something, a create, waits until there is room for
// it; what comes of that goes out at once, for as long as that is not more than a burst.
// It begins as if there had been a burst: another one may have come to its end just now.
// It is safe for concurrent use.
type limiter struct {
	gap time.Duration

	mu   sync.Mutex // guards next
	next time.Time  // when there is room for one more
}

func newLimiter(aSecond float64) *limiter {
	second := time.Second + burst
	return &limiter{
		gap: time.Duration(float64(second) / aSecond), next: time.Now().Add(burst),
	}
}

// pace is what has to pass before a call. A heartbeat goes out in any case, lest a hold
// be lost by that; others wait for it. A create waits here, and has no place before that:
// what else is asked for meanwhile comes first.
func (l *limiter) pace(call, path string) time.Duration {
	switch {
	case strings.HasPrefix(call, "end of "):
		return 0
	case call == "sync" && path == "/":
		l.take()
		return 0
	case strings.HasPrefix(call, "create"):
		return l.begin()
	}
	return max(0, l.take()-burst)
}

// begin waits for a moment at which nothing else is under way, but not for long: then it
// takes a place as others do.
func (l *limiter) begin() time.Duration {
	for began := time.Now(); time.Since(began) < burst; {
		wait := l.room()
		if wait <= 0 {
			return 0
		}
		time.Sleep(wait)
	}
	return l.take()
}

// take takes a place, and returns when that comes.
func (l *limiter) take() time.Duration {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.takeLocked(now)
}

func (l *limiter) takeLocked(now time.Time) time.Duration {
	at := l.next
	if at.Before(now) {
		at = now
	}
	l.next = at.Add(l.gap)
	return at.Sub(now)
}

// room takes a place if there is one at once; else it returns when there may be.
func (l *limiter) room() (wait time.Duration) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := l.next.Sub(now); wait > 0 {
		return wait
	}
	return l.takeLocked(now)
}
