package zkconn

import (
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// MaxRequest is the default of the servers' jute.maxbuffer: the longest request, in
// bytes, that they accept.
const MaxRequest = 0xfffff

// A server closes the connection on a request that is longer than its jute.maxbuffer, and
// says nothing. So a request of some length that breaks the connection this often in a
// row is not made again, and no longer one for a while: it would cost all who use the
// connection theirs. An outage is not taken for that: such a request is made again only
// once another one was answered.
const (
	cutsAtMost  = 5
	someLength  = 4096 // no server accepts less
	learnedFor  = 5 * time.Minute
	cutRequests = 64 // so many are remembered
)

// cuts are the requests of some length that broke the connection when they were made
// last, each as often in a row as it says. Of several that were under way the longest
// did. It is guarded by Conn.mu.
type cuts struct {
	times    map[cutKey]int
	underWay map[int]int // how many requests of some length are, by that
	// the length of the request that broke the connection last, and when that was
	broke   int
	brokeAt time.Time
	// no request of that length is made until then; 0: any is
	limit int
	until time.Time
}

// A cutKey is what makes two requests one that is made again.
type cutKey struct {
	op, path string
	size     int
}

// begin takes note of a request that is about to be made.
func (c *cuts) begin(key cutKey) {
	if key.size >= someLength {
		if c.underWay == nil {
			c.underWay = map[int]int{}
		}
		c.underWay[key.size]++
	}
}

// note takes note of the outcome of a request, which was sent at that time.
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
		return
	}
	now := time.Now()
	c.broke, c.brokeAt = key.size, now
	if c.times == nil || len(c.times) >= cutRequests {
		c.times = map[cutKey]int{key: c.times[key]}
	}
	if c.times[key]++; c.times[key] == cutsAtMost {
		delete(c.times, key)
		c.limit, c.until = key.size, now.Add(learnedFor)
	}
}

// isByAnother tells whether a longer request was under way when the connection broke
// under one of that size.
func (c *cuts) isByAnother(size int, sent time.Time) bool {
	for longer := range c.underWay {
		if longer > size {
			return true
		}
	}
	return size < c.broke && sent.Before(c.brokeAt)
}
