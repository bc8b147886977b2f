package zkserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
)

// An installation is a ZooKeeper on this machine, whose servers run as children of this
// process.
type installation struct {
	java      string
	classpath string
}

// mainClass runs a single server as well as a member of an ensemble.
const mainClass = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

func findInstallation() (*installation, error) {
	if !canFreeze {
		return nil, errors.New("this system cannot freeze a child process")
	}
	classpath, err := findJars()
	if err != nil {
		return nil, err
	}
	java := "java"
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java = filepath.Join(home, "bin", "java")
	}
	java, err = exec.LookPath(java)
	if err != nil {
		return nil, fmt.Errorf("no Java runtime: %w", err)
	}
	return &installation{java: java, classpath: classpath}, nil
}

func findJars() (string, error) {
	if home := os.Getenv("ZOOKEEPER_HOME"); home != "" {
		lib := filepath.Join(home, "lib")
		pattern := filepath.Join(lib, "zookeeper*.jar")
		if jars, _ := filepath.Glob(pattern); len(jars) == 0 {
			return "", fmt.Errorf("ZOOKEEPER_HOME=%s: no lib/zookeeper*.jar", home)
		}
		// conf says how the release logs.
		return filepath.Join(home, "conf") + ":" + filepath.Join(lib, "*"), nil
	}
	const (
		debian = "/usr/share/java/zookeeper.jar"
		log    = "/usr/share/java/slf4j-simple.jar"
		// What Netty needs for TLS, and the package's list of jars does not have.
		tls = "/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar"
	)
	if _, err := os.Stat(debian); err != nil {
		return "", fmt.Errorf("no ZOOKEEPER_HOME, and no package of Debian: %w", err)
	}
	return debian + ":" + log + ":" + tls, nil
}

func (in *installation) prepare(_ context.Context, s settings) (*Cluster, error) {
	root, err := os.MkdirTemp("", "zkserver-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		kind: "local", cleanUp: func(context.Context) error { return os.RemoveAll(root) },
	}
	const each = 3 // for clients, for the leader, for elections
	ports, err := freePorts(each * s.servers)
	if err != nil {
		return c, err
	}
	members := make([]PeerPorts, s.servers)
	for i := range members {
		members[i] = PeerPorts{Quorum: ports[each*i+1], Election: ports[each*i+2]}
	}
	for i := range s.servers {
		lines, err := s.memberLines(members, i)
		if err != nil {
			return c, err
		}
		lines = append(lines, "clientPortAddress="+loopback)
		port, dir := ports[each*i], filepath.Join(root, strconv.Itoa(i+1))
		h := &processHost{java: in.java, dir: dir}
		h.args = slices.Concat([]string{"-cp", in.classpath}, s.jvm,
			s.jaasFlags(h.file("jaas.conf")), []string{mainClass, h.file("zoo.cfg")})
		c.Servers = append(c.Servers, &Server{
			Addr: net.JoinHostPort(loopback, strconv.Itoa(port)), host: h,
		})
		cfg := s.zooCfg(h.dataDir(), port, lines)
		if err := h.write(i+1, cfg, s.jaas()); err != nil {
			return c, err
		}
	}
	return c, nil
}

// memberLines are the lines of zoo.cfg that tell the server with the given index where
// the members of its ensemble are. Itself it must find at its real ports, since it
// listens there.
func (s settings) memberLines(members []PeerPorts, self int) ([]string, error) {
	if len(members) == 1 {
		return nil, nil
	}
	var lines []string
	for i, m := range members {
		if s.route != nil && i != self {
			var err error
			if m, err = s.route(self, i, m); err != nil {
				return nil, fmt.Errorf(
					"zkserver: route server %d to server %d: %w", self+1, i+1, err,
				)
			}
		}
		lines = append(
			lines, fmt.Sprintf("server.%d=%s:%d:%d", i+1, loopback, m.Quorum, m.Election),
		)
	}
	return lines, nil
}
