package seqnode

import "github.com/zkrecipes/recipes/internal/order"

// countsNumbers reports whether the watermark may tell m's turn, so that it is worth
// waiting for an answer about the directory.
func (c *cohort) countsNumbers(m *Member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.order.Watermark()
	return ok && (m.queue.Nested == nil || !m.queue.Nested(m.self.Name()))
}

// decide asks whose turn it is. It first tells what the watches say now: a watch that has
// not fired proves something only if it was looked at before the decision. The epoch is
// read before the watch on the directory, for what that says, and again for the decision:
// if the connection was away in between, what the watch said does not count.
func (c *cohort) decide(m *Member) (d order.Decision, followed bool) {
	c.mu.Lock()
	before := c.epoch()
	czxid, _ := c.key.s.IncarnationNow(m.queue.Dir) // 0: not known
	c.order.Directory(before, czxid)
	c.confirmLocked(m)
	d = c.order.Decide(m.self, c.epoch())
	followed = c.order.Followed(m.self)
	token := m.self.Token()
	c.mu.Unlock()
	m.node.LearnToken(token)
	m.node.Heed()
	return d, followed
}

// confirmLocked tells what the watch on m's own znode says, and the token, which may have
// become known.
func (c *cohort) confirmLocked(m *Member) {
	epoch, ok := m.node.Confirmation()
	c.order.Confirmed(m.self, order.Epoch(epoch), m.node.Token())
	if !ok {
		c.order.Unconfirmed(m.self)
	}
}

// doubt has m look at a new list, whatever is known.
func (c *cohort) doubt(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Doubt(m.self)
}

// held tells that m, which was granted, is about to be relied on.
func (c *cohort) held(m *Member, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.confirmLocked(m) // its token counts for those behind
	c.order.Held(m.self, first)
}

// refused tells that m is not relied on after all.
func (c *cohort) refused(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order.Refused(m.self)
}
