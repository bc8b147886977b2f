package zktest

import "maps"

// keptFor is how many transactions are kept for a server that lacks them. One that lacks
// more takes a snapshot, as in a real ensemble (ZKDatabase.commitLogCount).
const keptFor = 500

// A txnLog is the committed log. What every server has applied is forgotten.
type txnLog struct {
	forgotten int // how many
	kept      []txn
}

// end is how many transactions have been committed.
func (l *txnLog) end() int { return l.forgotten + len(l.kept) }

func (l *txnLog) add(x txn) { l.kept = append(l.kept, x) }

// after gives the transactions behind the first n, false if some of them are forgotten.
func (l *txnLog) after(n int) ([]txn, bool) {
	if n < l.forgotten {
		return nil, false
	}
	return l.kept[n-l.forgotten:], true
}

// forget keeps none of the first n.
func (l *txnLog) forget(n int) {
	n -= l.forgotten
	if n <= 0 {
		return
	}
	clear(l.kept[:n])
	l.forgotten += n
	if n == len(l.kept) {
		n, l.kept = 0, l.kept[:0]
	}
	l.kept = l.kept[n:]
}

// forgetLocked drops from the log what no server needs, and what one that is far behind
// does.
func (c *Cluster) forgetLocked() {
	least := c.log.end()
	for _, s := range c.servers {
		least = min(least, s.applied)
	}
	c.log.forget(max(least, c.log.end()-keptFor))
}

// catchUpLocked brings a server that has no clients up to the end of the log.
func (s *Server) catchUpLocked() {
	rest, ok := s.cluster.log.after(s.applied)
	if !ok {
		s.restoreLocked(s.cluster.newestLocked())
		return
	}
	for _, x := range rest {
		s.applyLocked(x)
	}
}

// newestLocked is a server that has applied all there is: whoever led last has.
func (c *Cluster) newestLocked() *Server {
	newest := c.servers[0]
	for _, s := range c.servers {
		if s.applied > newest.applied {
			newest = s
		}
	}
	return newest
}

// restoreLocked takes over the state of another server.
func (s *Server) restoreLocked(from *Server) {
	s.tree, s.applied, s.zxid = from.tree.clone(), from.applied, from.zxid
}

// clone shares data and ACLs, which are replaced and never changed.
func (t *tree) clone() *tree {
	twin := &tree{
		sasl:       t.sasl,
		x509:       t.x509,
		membership: t.membership,
		shuffle:    t.shuffle,
		nodes:      make(map[string]*node, len(t.nodes)),
		ephemeral:  make(map[int64]map[string]struct{}, len(t.ephemeral)),
		reapable:   maps.Clone(t.reapable),
		quotas:     maps.Clone(t.quotas),
	}
	for path, n := range t.nodes {
		other := *n
		other.children = maps.Clone(n.children)
		twin.nodes[path] = &other
	}
	twin.nodes[""] = twin.nodes["/"]
	for session, paths := range t.ephemeral {
		twin.ephemeral[session] = maps.Clone(paths)
	}
	return twin
}
