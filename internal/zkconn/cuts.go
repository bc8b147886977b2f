package zkconn

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

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

type cutKey struct {
	op   *op
	path string
	size int
}

func (r request) cutKey() cutKey { return cutKey{r.op, r.path, r.size} }

// checkSize returns an error if r would break the connection.
func (s *Conn) checkSize(r request) error {
	if r.size < someLength {
		return nil
	}
	if r.size > MaxRequest {
		return outcome.NotSent(fmt.Errorf("the request has %d bytes, %d of them data: "+
			"ZooKeeper accepts at most %d (jute.maxbuffer)", r.size, r.data, MaxRequest))
	}
	s.mu.Lock()
	cut, limit := s.cuts.times[r.cutKey()] > 0, s.cuts.limit
	if !time.Now().Before(s.cuts.until) {
		limit = 0
	}
	s.mu.Unlock()
	switch {
	case limit > 0 && r.size >= limit:
		return outcome.NotSent(fmt.Errorf("the request has %d bytes, %d bytes of data "+
			"among them, and %d tries of one with %d bytes broke the connection, while "+
			"other requests got through; is the servers' jute.maxbuffer lower than "+
			"that? %w", r.size, r.data, cutsAtMost, limit, zk.ErrConnectionClosed))
	case cut:
		return s.Sync("/")
	}
	return nil
}

// begin takes note of a request that is about to be made.
func (c *cuts) begin(r *request) {
	if r.size >= someLength {
		if c.underWay == nil {
			c.underWay = map[int]int{}
		}
		c.underWay[r.size]++
	}
}

// note takes note of the outcome of a request.
func (c *cuts) note(r request, err error, now time.Time) {
	if r.size < someLength {
		return
	}
	if c.underWay[r.size]--; c.underWay[r.size] == 0 {
		delete(c.underWay, r.size)
	}
	key := r.cutKey()
	switch {
	case !outcome.ConnectionLost(err):
		delete(c.times, key)
		return
	case c.isByAnother(r):
		return
	}
	c.broke, c.brokeAt = r.size, now
	if c.times == nil || len(c.times) >= cutRequests {
		c.times = map[cutKey]int{key: c.times[key]}
	}
	if c.times[key]++; c.times[key] == cutsAtMost {
		delete(c.times, key)
		c.limit, c.until = r.size, now.Add(learnedFor)
	}
}

// isByAnother tells whether a longer request was under way when the connection broke
// under r.
func (c *cuts) isByAnother(r request) bool {
	for size := range c.underWay {
		if size > r.size {
			return true
		}
	}
	return r.size < c.broke && r.sent.Before(c.brokeAt)
}
