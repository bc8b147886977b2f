package simulator

// checkPasses demands that nobody waits for too long behind a place that another process
// keeps, once it stands in the queue where that process can see it: owners of that
// process come before it no more often than the passes allow, and readers that come
// later not at all before a writer.
func (an *analysis) checkPasses() error {
	if an.calm == never || an.limits.Notice == 0 {
		return nil
	}
	for _, path := range an.paths {
		granted := an.granted(path)
		began := map[string]*acquisition{} // by znode: the first who had it
		for _, a := range granted {
			if began[a.node] == nil {
				began[a.node] = a
			}
		}
		for _, b := range an.byPath[path] {
			_, removed := an.removed[b.queuedNode]
			if b.queuedNode == "" || b.queuedAt < an.calm || removed {
				continue
			}
			if err := an.checkPassed(path, b, granted, began); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPassed looks who came by another's place before b, who stood behind it.
func (an *analysis) checkPassed(
	path string, b *acquisition, granted []*acquisition, began map[string]*acquisition,
) error {
	passes := map[string]int{} // by znode
	from, until := b.queuedAt+an.limits.Notice, min(b.grantedAt, b.failedAt)
	for _, a := range granted {
		if !a.cached || a.under || number(a.node) >= number(b.queuedNode) ||
			a.grantedAt <= from || a.grantedAt >= until {
			continue
		}
		// A place whose turn comes by a notification does not know yet who is behind it.
		first := began[a.node]
		knows := first.grantedAt + an.limits.Notice
		switch {
		case a.mode == Exclusive && a != first:
			passes[a.node]++
			if passes[a.node] > an.limits.Passes && a.grantedAt > knows {
				return an.violation("passes", path, a.grantedAt,
					"%v came by %s, passed on %d times while %v waited behind it",
					a, a.node, passes[a.node], b)
			}
		case a.mode == Shared && b.mode == Exclusive &&
			a.calledAt > knows:
			return an.violation("passes", path, a.grantedAt,
				"%v was let in by %s while %v waited behind it", a, a.node, b)
		}
	}
	return nil
}

// number is a znode's sequence number, as text.
func number(node string) string { return node[max(0, len(node)-10):] }
