package zkserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// An installation is a ZooKeeper on this machine, whose servers run as children of this process.
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
		if jars, _ := filepath.Glob(filepath.Join(lib, "zookeeper*.jar")); len(jars) == 0 {
			return "", fmt.Errorf("ZOOKEEPER_HOME=%s: no lib/zookeeper*.jar", home)
		}
		// conf says how the release logs.
		return filepath.Join(home, "conf") + ":" + filepath.Join(lib, "*"), nil
	}
	const debian, log = "/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"
	if _, err := os.Stat(debian); err != nil {
		return "", fmt.Errorf("no ZOOKEEPER_HOME, and no package of Debian: %w", err)
	}
	return debian + ":" + log, nil
}

func (in *installation) place(_ context.Context, s settings) (*Cluster, error) {
	root, err := os.MkdirTemp("", "zkserver-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{kind: "local", tidy: func(context.Context) error { return os.RemoveAll(root) }}
	const each = 3 // for clients, for the leader, for elections
	ports, err := freePorts(each * s.servers)
	if err != nil {
		return c, err
	}
	lines := []string{"clientPortAddress=" + loopback}
	if s.servers > 1 {
		for i := range s.servers {
			lines = append(lines, fmt.Sprintf("server.%d=%s:%d:%d", i+1, loopback, ports[each*i+1], ports[each*i+2]))
		}
	}
	for i := range s.servers {
		port, dir := ports[each*i], filepath.Join(root, strconv.Itoa(i+1))
		h := &child{java: in.java, dir: dir}
		h.args = append(append([]string{"-cp", in.classpath}, s.jvm...), mainClass, h.file("zoo.cfg"))
		c.Servers = append(c.Servers, &Server{Addr: net.JoinHostPort(loopback, strconv.Itoa(port)), host: h})
		if err := h.write(i+1, s.zooCfg(h.dataDir(), port, lines)); err != nil {
			return c, err
		}
	}
	return c, nil
}
