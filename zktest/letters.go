package zktest

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// tellLocked answers the commands that readiness checks and tests send; nil for any other.
func (p *Peer) tellLocked(word fourLetters) []byte {
	switch string(word[:]) {
	case "ruok":
		return []byte("imok")
	case "srvr":
		if !p.serving {
			return []byte("This ZooKeeper instance is not currently serving requests\n")
		}
		return fmt.Appendf(nil, "Zookeeper version: zktest, like 3.8.0\nConnections: %d\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
			len(p.conns), p.zxid, p.modeLocked(), len(p.tree.nodes))
	case "conf": // the data are nowhere; internal/zkserver knows its servers by the directory
		return fmt.Appendf(nil, "dataDir=none/version-2\ntickTime=%d\nmaxSessionTimeout=%d\nserverId=%d\n",
			p.s.tick.Milliseconds(), p.s.negotiate(math.MaxInt64).Milliseconds(), p.id)
	case "wchs":
		var total int
		watched := p.watches.watches[watchData]
		for _, at := range watched {
			total += len(at)
		}
		return fmt.Appendf(nil, "%d connections watching %d paths\nTotal watches:%d\n", p.watches.watchers(watchData), len(watched), total)
	case "wchp":
		return p.watchersLocked()
	default:
		return nil
	}
}

// watchersLocked lists who watches what: of data watches only, as the real server does.
func (p *Peer) watchersLocked() []byte {
	var list []byte
	watched := p.watches.watches[watchData]
	for _, path := range slices.Sorted(maps.Keys(watched)) {
		list = fmt.Appendf(list, "%s\n", path)
		for c := range watched[path] {
			list = fmt.Appendf(list, "\t0x%x\n", c.session)
		}
	}
	return list
}

func (p *Peer) modeLocked() string {
	switch {
	case len(p.s.peers) == 1:
		return "standalone"
	case p.s.leader == p:
		return "leader"
	default:
		return "follower"
	}
}
