package zkconn

import (
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// MaxRequest is the default of the servers' jute.maxbuffer: the longest request, in
// bytes, that they accept.
const MaxRequest = 0xfffff

// A server that gets a request longer than its jute.maxbuffer closes the connection, and
// says nothing. All who use the connection lose their requests. So a request of
// someLength or more that broke it cutsAtMost times in a row is not made again, nor for
// learnedFor any request of its length or longer. An outage does not count: after a
// failure such a request is made again only once another was answered
// (Conn.checkSizeOrSync).
const (
	cutsAtMost  = 5
	someLength  = 4096 // no server accepts less
	learnedFor  = 5 * time.Minute
	cutRequests = 64 // how many are remembered
)

// cuts count, for each request of some length that broke the connection when it was made
// last, how often in a row it did. They are guarded by Conn.mu.
type cuts struct {
	times    map[cutKey]int
	underWay map[int]int // how many requests of a length are under way
	// the length of the request that broke the connection last, and when that was
	broke   int
	brokeAt time.Time
	// until then no request of limit bytes or more is made; 0: there is no limit
	limit int
	until time.Time
}

// A cutKey is what two requests have in common if the second repeats the first.
type cutKey struct {
	op, path string
	size     int
}

// begin records a request that is about to be made.
func (c *cuts) begin(key cutKey) {
	if key.size >= someLength {
		if c.underWay == nil {
			c.underWay = map[int]int{}
		}
		c.underWay[key.size]++
	}
}

// note records the outcome of a request, which was sent at that time.
func (c *cuts) note(key cutKey, sent time.Time, err error) {
	if key.size < someLength {
		return
	}
	if c.underWay[key.size]--; c.underWay[key.size] == 0 {
		delete(c.underWay, key.size)
	}
	switch {
	case !outcome.ConnectionLost(err):
		delete(c.times, key)
		return
	case c.isByAnother(key.size, sent):
		return // this request may be innocent: neither more nor less is known of it
	}
	now := time.Now()
	c.broke, c.brokeAt = key.size, now
	if c.times == nil || len(c.times) >= cutRequests { // start over, but for this one
		c.times = map[cutKey]int{key: c.times[key]}
	}
	if c.times[key]++; c.times[key] == cutsAtMost {
		// The limit stands for all such requests. After that time this one counts again
		// from the start.
		delete(c.times, key)
		c.limit, c.until = key.size, now.Add(learnedFor)
	}
}

// isByAnother reports whether a longer request was under way when the connection broke
// under one of that size. Of several the longest is taken to have broken it.
func (c *cuts) isByAnother(size int, sent time.Time) bool {
	for longer := range c.underWay {
		if longer > size {
			return true
		}
	}
	// The outcome of the longer request may have come first.
	return size < c.broke && sent.Before(c.brokeAt)
}
