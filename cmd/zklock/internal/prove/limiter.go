package prove

import (
	"strings"
	"sync"
	"time"
)

// burst is by how much requests may run ahead of the rate: a hand-over consists of a few,
// and is not to wait between them.
const burst = time.Second / 4

// A limiter keeps requests to a rate: in no second are there more than that. What begins
// something, a create, waits until there is room for it; what comes of that goes out at
// once, for as long as that is not more than a burst. It is safe for concurrent use.
type limiter struct {
	gap time.Duration

	mu   sync.Mutex // guards next
	next time.Time  // when there is room for one more
}

func newLimiter(aSecond float64) *limiter {
	second := time.Second + burst
	return &limiter{gap: time.Duration(float64(second) / aSecond)}
}

// pace is what has to pass before a call. A heartbeat goes out in any case, lest a hold
// be lost by that; others wait for it.
func (l *limiter) pace(call, path string) time.Duration {
	if strings.HasPrefix(call, "end of ") {
		return 0
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.next
	if at.Before(now) {
		at = now
	}
	l.next = at.Add(l.gap)
	switch {
	case call == "sync" && path == "/":
		return 0
	case strings.HasPrefix(call, "create"):
		return at.Sub(now)
	}
	return max(0, at.Sub(now)-burst)
}
