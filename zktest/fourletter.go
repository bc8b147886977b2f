package zktest

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// tellLocked answers the commands that readiness checks and tests send; nil for any
// other.
func (s *Server) tellLocked(word fourLetters) []byte {
	switch string(word[:]) {
	case "ruok":
		return []byte("imok")
	case "srvr":
		if !s.serving {
			return []byte("This ZooKeeper instance is not currently serving requests\n")
		}
		return fmt.Appendf(nil, "Zookeeper version: zktest, like 3.8.0\n"+
			"Connections: %d\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
			len(s.conns), s.zxid, s.modeLocked(), len(s.tree.nodes))
	case "conf":
		// The data are nowhere; internal/zkserver knows its servers by the directory.
		longest := s.cluster.negotiate(math.MaxInt64)
		return fmt.Appendf(nil, "dataDir=none/version-2\n"+
			"tickTime=%d\nmaxSessionTimeout=%d\nserverId=%d\n",
			s.cluster.tick.Milliseconds(), longest.Milliseconds(), s.id)
	case "wchs":
		var total int
		watched := s.watches.watches[watchData]
		for _, at := range watched {
			total += len(at)
		}
		return fmt.Appendf(nil,
			"%d connections watching %d paths\nTotal watches:%d\n",
			s.watches.watchers(watchData), len(watched), total)
	case "wchp":
		return s.watchersLocked()
	default:
		return nil
	}
}

// watchersLocked lists who watches what: of data watches only, as the real server does.
func (s *Server) watchersLocked() []byte {
	var list []byte
	watched := s.watches.watches[watchData]
	for _, path := range slices.Sorted(maps.Keys(watched)) {
		list = fmt.Appendf(list, "%s\n", path)
		for c := range watched[path] {
			list = fmt.Appendf(list, "\t0x%x\n", c.session)
		}
	}
	return list
}

func (s *Server) modeLocked() string {
	switch {
	case len(s.cluster.servers) == 1:
		return "standalone"
	case s.cluster.leader == s:
		return "leader"
	default:
		return "follower"
	}
}
