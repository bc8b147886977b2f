package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// consLocked describes each connection, the one that asks included.
func (s *Server) consLocked() string {
	var b strings.Builder
	for _, c := range s.conns {
		b.WriteString(c.describeLocked(true))
	}
	return b.String() + "\n"
}

// describeLocked is the line of a connection in stat and, in full, in cons. The number in
// brackets says whether the server listens to it.
func (c *conn) describeLocked(full bool) string {
	listens := 1
	if c.session == 0 {
		listens = 0
	}
	t := c.traffic
	text := fmt.Sprintf(" /%s[%d](queued=%d,recved=%d,sent=%d",
		c.from(), listens, len(c.frames), t.received, t.sent)
	if full && c.session != 0 {
		text += fmt.Sprintf(",sid=0x%x,lop=%s,est=%d,to=%d",
			c.session, c.last.name(), c.began.UnixMilli(), c.timeout.Milliseconds())
		if c.last.xid >= 0 {
			text += fmt.Sprintf(",lcxid=0x%x", c.last.xid)
		}
		text += fmt.Sprintf(",lzxid=0x%x,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
			uint64(c.last.zxid), c.last.at.Milliseconds(), c.last.took, t.least,
			t.total/max(t.answered, 1), t.most)
	}
	return text + ")\n"
}

// dumpLocked lists sessions, their ephemeral znodes, and connections. Only a leader knows
// when sessions end.
func (s *Server) dumpLocked() string {
	c := s.cluster
	text := "SessionTracker dump:\n"
	ids := c.sessionIDsLocked()
	if c.leader == s {
		text += "Session Sets " + expirySets(ids,
			func(id int64) time.Time { return c.sessions[id].expiry },
			func(id int64) string { return fmt.Sprintf("0x%x", id) })
	} else {
		text += fmt.Sprintf("Global Sessions(%d):\n", len(ids))
		for _, id := range ids {
			text += fmt.Sprintf("0x%x\t%dms\n", id, c.sessions[id].timeout.Milliseconds())
		}
	}
	text += fmt.Sprintf("ephemeral nodes dump:\nSessions with Ephemerals (%d):\n",
		len(s.tree.ephemeral))
	for _, id := range slices.Sorted(maps.Keys(s.tree.ephemeral)) {
		text += fmt.Sprintf("0x%x:\n", id)
		for _, path := range s.tree.ephemerals(id) {
			text += "\t" + path + "\n"
		}
	}
	return text + "Connections dump:\nConnections Sets " + expirySets(s.conns,
		func(c *conn) time.Time { return c.heard.Add(c.timeout) },
		func(c *conn) string {
			return fmt.Sprintf("ip: /%s sessionId: 0x%x", c.from(), c.session)
		})
}

// expirySets lists all by the seconds in which they end, the first to end first
// (ExpiryQueue.dump).
func expirySets[T any](all []T, ends func(T) time.Time, line func(T) string) string {
	sets := map[int64][]T{}
	for _, one := range all {
		second := ends(one).Unix()
		sets[second] = append(sets[second], one)
	}
	text := fmt.Sprintf("(%d)/(%d):\n", len(sets), len(all))
	for _, second := range slices.Sorted(maps.Keys(sets)) {
		text += fmt.Sprintf("%d expire at %s:\n", len(sets[second]),
			time.Unix(second, 0).Format("Mon Jan 02 15:04:05 MST 2006"))
		for _, one := range sets[second] {
			text += "\t" + line(one) + "\n"
		}
	}
	return text
}

// wchsLocked, like the two below, knows data watches only, as the real one does.
func (s *Server) wchsLocked() string {
	var total int
	watched := s.watches.watches[watchData]
	for _, at := range watched {
		total += len(at)
	}
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n",
		s.watches.watchers(watchData), len(watched), total)
}

// wchcLocked lists what each session watches.
func (s *Server) wchcLocked() string {
	paths := map[string][]string{}
	watched := s.watches.watches[watchData]
	for _, path := range slices.Sorted(maps.Keys(watched)) {
		for c := range watched[path] {
			session := fmt.Sprintf("0x%x", c.session)
			paths[session] = append(paths[session], path)
		}
	}
	return indented(paths)
}

// wchpLocked lists who watches each path.
func (s *Server) wchpLocked() string {
	sessions := map[string][]string{}
	for path, at := range s.watches.watches[watchData] {
		for c := range at {
			sessions[path] = append(sessions[path], fmt.Sprintf("0x%x", c.session))
		}
		slices.Sort(sessions[path])
	}
	return indented(sessions)
}

// indented is a list of lists, both with a line for each entry.
func indented(lists map[string][]string) string {
	var b strings.Builder
	for _, head := range slices.Sorted(maps.Keys(lists)) {
		b.WriteString(head + "\n")
		for _, entry := range lists[head] {
			b.WriteString("\t" + entry + "\n")
		}
	}
	return b.String() + "\n"
}
