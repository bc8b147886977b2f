package zktest

import (
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"time"
)

// version is the release that the package imitates. Its date is in the form that
// go-zookeeper's FLWSrvr parses, and that releases before 3.6 had.
const version = "3.8.0-zktest, built on 02/25/2022 08:49 UTC"

const notServing = "This ZooKeeper instance is not currently serving requests\n"

// words are the four-letter words, and what answers them while the server serves, in the
// layout of ZooKeeper 3.8.
var words = map[string]func(*Server) string{
	"ruok": func(*Server) string { return "imok" },
	"isro": (*Server).isroLocked,
	"envi": func(*Server) string { return environment() },
	"srvr": (*Server).srvrLocked,
	"stat": (*Server).statLocked,
	"conf": (*Server).confLocked,
	"mntr": (*Server).mntrLocked,
	"cons": (*Server).consLocked,
	"dump": (*Server).dumpLocked,
	"wchs": (*Server).wchsLocked,
	"wchc": (*Server).wchcLocked,
	"wchp": (*Server).wchpLocked,
}

// tellLocked answers the commands that readiness checks, monitors and tests send; nothing
// to any other.
func (s *Server) tellLocked(word fourLetters) []byte {
	name := string(word[:])
	answer := words[name]
	switch {
	case answer == nil:
		return nil
	case s.serving || s.readOnly || name == "ruok" || name == "envi":
		return []byte(answer(s))
	case name == "isro":
		return []byte("null")
	default:
		return []byte(notServing)
	}
}

func (s *Server) isroLocked() string {
	if s.readOnly {
		return "ro"
	}
	return "rw"
}

func (s *Server) srvrLocked() string {
	return "Zookeeper version: " + version + "\n" + s.summaryLocked()
}

func (s *Server) statLocked() string {
	var b strings.Builder
	b.WriteString("Zookeeper version: " + version + "\nClients:\n")
	for _, c := range s.conns {
		b.WriteString(c.describeLocked(false))
	}
	return b.String() + "\n" + s.summaryLocked()
}

func (s *Server) summaryLocked() string {
	t := s.traffic
	text := fmt.Sprintf("Latency min/avg/max: %d/%s/%d\nReceived: %d\nSent: %d\n"+
		"Connections: %d\nOutstanding: %d\nZxid: 0x%x\nMode: %s\nNode count: %d\n",
		t.least, t.average(), t.most, t.received, t.sent,
		len(s.conns), s.outstandingLocked(), s.zxid, s.modeLocked(), len(s.tree.nodes))
	if s.modeLocked() == "leader" {
		text += "Proposal sizes last/min/max: -1/-1/-1\n" // as before the first one
	}
	return text
}

func (s *Server) outstandingLocked() int {
	n := 0
	for _, c := range s.conns {
		n += len(c.calls)
	}
	return n
}

func (s *Server) modeLocked() string {
	switch {
	case s.readOnly:
		return "read-only"
	case len(s.cluster.servers) == 1:
		return "standalone"
	case s.cluster.leader == s:
		return "leader"
	default:
		return "follower"
	}
}

// confLocked speaks of a directory that does not exist: internal/zkserver knows its
// servers by it.
func (s *Server) confLocked() string {
	const none = "none/version-2"
	c := s.cluster
	text := fmt.Sprintf("clientPort=%s\nsecureClientPort=-1\n"+
		"dataDir=%s\ndataDirSize=0\ndataLogDir=%s\ndataLogSize=0\n"+
		"tickTime=%d\nmaxClientCnxns=0\nminSessionTimeout=%d\nmaxSessionTimeout=%d\n"+
		"clientPortListenBacklog=-1\nserverId=%d\n",
		s.portLocked(), none, none, c.tick.Milliseconds(),
		c.negotiate(0).Milliseconds(), c.negotiate(math.MaxInt64).Milliseconds(),
		s.memberID())
	if len(c.servers) == 1 {
		return text
	}
	text += fmt.Sprintf("initLimit=%d\nsyncLimit=%d\n"+
		"electionAlg=3\nelectionPort=3888\nquorumPort=2888\npeerType=0\nmembership: \n",
		syncLimit, syncLimit)
	return text + string(s.tree.nodes[configPath].data)
}

// memberID is 0 for a server on its own, as in zoo.cfg.
func (s *Server) memberID() int {
	if len(s.cluster.servers) == 1 {
		return 0
	}
	return s.id
}

// portLocked is where clients find the server: over TCP, or else by its name.
func (s *Server) portLocked() string {
	addr := s.Addr()
	if doors := s.cluster.doors; doors != nil {
		addr = doors[s.id-1].addr.String()
	}
	_, port, _ := net.SplitHostPort(addr) // it has one
	return port
}

// environment has the keys of the real server's. There is no Java to describe.
func environment() string {
	const none = "none"
	host, _ := os.Hostname() // "" if it has no name
	dir, _ := os.Getwd()     // likewise
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	const mega = 1 << 20
	total := memory.Sys / mega
	text := "Environment:\n"
	for _, line := range []struct{ key, value string }{
		{"zookeeper.version", version},
		{"host.name", host},
		{"java.version", none},
		{"java.vendor", none},
		{"java.home", none},
		{"java.class.path", none},
		{"java.library.path", none},
		{"java.io.tmpdir", os.TempDir()},
		{"java.compiler", none},
		{"os.name", runtime.GOOS},
		{"os.arch", runtime.GOARCH},
		{"os.version", none},
		{"user.name", none},
		{"user.home", none},
		{"user.dir", dir},
		{"os.memory.free", fmt.Sprintf("%dMB", total-memory.HeapInuse/mega)},
		{"os.memory.max", fmt.Sprintf("%dMB", total)},
		{"os.memory.total", fmt.Sprintf("%dMB", total)},
	} {
		text += line.key + "=" + line.value + "\n"
	}
	return text
}

// mntrLocked has those of the real server's keys that mean something here.
func (s *Server) mntrLocked() string {
	t := s.traffic
	var b strings.Builder
	line := func(key string, value any) { fmt.Fprintf(&b, "zk_%s\t%v\n", key, value) }
	line("version", version)
	line("server_state", s.modeLocked())
	switch s.modeLocked() {
	case "leader":
		line("peer_state", "leading - broadcast")
	case "follower":
		line("peer_state", "following - broadcast")
	}
	line("ephemerals_count", s.tree.countEphemerals())
	line("num_alive_connections", len(s.conns))
	line("avg_latency", t.average())
	line("outstanding_requests", s.outstandingLocked())
	line("znode_count", len(s.tree.nodes))
	line("global_sessions", len(s.cluster.sessions))
	line("packets_sent", t.sent)
	line("packets_received", t.received)
	if s.modeLocked() == "leader" {
		line("synced_followers", s.cluster.followersLocked())
		line("learners", s.cluster.followersLocked())
		line("pending_syncs", 0)
	}
	line("watch_count", s.watches.count())
	line("min_latency", t.least)
	line("approximate_data_size", s.tree.size())
	line("local_sessions", 0)
	line("uptime", time.Since(s.cluster.began).Milliseconds())
	line("max_latency", t.most)
	if len(s.cluster.servers) > 1 {
		line("quorum_size", len(s.cluster.servers))
	}
	return b.String()
}

// followersLocked counts the servers that follow the leader.
func (c *Cluster) followersLocked() int {
	n := 0
	for _, s := range c.servers {
		if s != c.leader && s.inContactLocked() {
			n++
		}
	}
	return n
}
