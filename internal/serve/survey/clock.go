package survey

import "time"

// A clock estimates the servers' time: that of this machine, plus by how much the
// servers' is ahead. A znode that was read right after its create tells that, less the
// time in between. So the greatest of some readings counts.
type clock struct {
	ahead [64]time.Duration // of the last readings, in a ring
	n     int               // how many there were
}

// learn takes note that a znode has just been created.
func (c *clock) learn(created, now time.Time) {
	c.ahead[c.n%len(c.ahead)] = created.Sub(now)
	c.n++
}

// offset is by how much the servers' clock is ahead; 0 if that is not known.
func (c *clock) offset() time.Duration {
	if c.n == 0 {
		return 0
	}
	most := c.ahead[0]
	for _, one := range c.ahead[:min(c.n, len(c.ahead))] {
		most = max(most, one)
	}
	return most
}

// now is the servers' time.
func (c *clock) now() time.Time { return time.Now().Add(c.offset()) }
