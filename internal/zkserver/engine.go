package zkserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// defaultImage is the official image of the version that the tests are known to pass
// with.
const defaultImage = "zookeeper:3.9.3"

// insidePort is where a server in a container serves clients.
const insidePort = 2181

// containerJAAS is the file of SASL's users there.
const containerJAAS = "/conf/jaas.conf"

// An engine runs servers in containers.
type engine struct {
	program *program
	host    string // where the published ports are
	image   string
}

// findEngine returns the engine that the program finds, if it answers and has the image.
// It looks once: if a pull fails, it would fail for every test.
var findEngine = sync.OnceValues(func() (*engine, error) {
	// For the build of the program and the pull, which both may download much; less than
	// go test's own limit.
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	dir, err := programDir()
	if err != nil {
		return nil, err
	}
	p, err := startProgram(dir)
	if err != nil {
		return nil, err
	}
	e := &engine{program: p, image: os.Getenv("ZOOKEEPER_IMAGE")}
	if e.image == "" {
		e.image = defaultImage
	}
	var place struct{ Host string }
	if err := p.call(ctx, "Find", args{"Name": e.image}, &place); err != nil {
		return nil, errors.Join(err, p.client.Close())
	}
	e.host = place.Host
	if e.host == "localhost" {
		e.host = loopback // it may mean ::1 too, where nothing is published
	}
	return e, nil
})

// mayHaveEngine returns whether there is a trace of a container engine where
// testcontainers looks for one. Without any, nothing has to be built to know that there
// is none.
func mayHaveEngine() bool {
	if runtime.GOOS == "windows" || os.Getenv("DOCKER_HOST") != "" {
		return true
	}
	traces := []string{"/var/run/docker.sock"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		traces = append(traces, filepath.Join(dir, "docker.sock"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, name := range []string{
			".testcontainers.properties", ".docker/run/docker.sock",
			".docker/desktop/docker.sock",
		} {
			traces = append(traces, filepath.Join(home, name))
		}
	}
	for _, trace := range traces {
		if _, err := os.Stat(trace); err == nil {
			return true
		}
	}
	return false
}

// A spec describes a container to the program: Spec in ./containers.
type spec struct {
	Image    string
	Env      map[string]string
	Files    map[string]string
	Alias    string
	Port     int
	HostIP   string
	HostPort int
}

func (e *engine) prepare(ctx context.Context, s settings) (*Cluster, error) {
	if s.kerberos != nil {
		return nil, errors.New("zkserver: Kerberos is for local servers: set " +
			"ZOOKEEPER_RUN=local")
	}
	ports, err := freePorts(s.servers)
	if err != nil {
		return nil, err
	}
	var lines []string
	if s.servers > 1 {
		// Its own name may be known to a server a moment later than the server wants to
		// listen there.
		lines = append(lines, "quorumListenOnAllIPs=true")
		for i := range s.servers {
			lines = append(lines, fmt.Sprintf("server.%d=%s:2888:3888", i+1, alias(i+1)))
		}
	}
	specs := make([]spec, len(ports))
	for i, port := range ports {
		specs[i] = e.spec(i+1, port, s, lines)
	}
	var made struct {
		Containers []string
		Network    string
	}
	err = e.program.call(ctx, "Prepare", args{"Containers": specs}, &made)
	if err != nil {
		return nil, fmt.Errorf("zkserver: %w", err)
	}
	c := &Cluster{kind: "container", cleanUp: func(ctx context.Context) error {
		if made.Network == "" {
			return nil
		}
		return e.program.call(ctx, "Remove", args{"ID": made.Network}, nil)
	}}
	for i, port := range ports {
		addr := net.JoinHostPort(e.host, strconv.Itoa(port))
		c.Servers = append(c.Servers, &Server{
			Addr: addr, host: &containerHost{e.program, made.Containers[i], addr},
		})
	}
	return c, nil
}

func alias(id int) string { return fmt.Sprintf("zk%d", id) }

// spec describes a container of which the image's entry point has little to do: it finds
// a zoo.cfg, and so the same one serves as for a local server.
func (e *engine) spec(id, port int, s settings, lines []string) spec {
	// A restarted member may come back with another address; Java would remember the old
	// one for half a minute.
	flags := slices.Concat(
		[]string{"-Dsun.net.inetaddr.ttl=0", "-Dsun.net.inetaddr.negative.ttl=0"},
		s.jvm, s.jaasFlags(containerJAAS),
	)
	made := spec{
		Image: e.image,
		Env: map[string]string{
			"ZOO_MY_ID":  strconv.Itoa(id),
			"JMXDISABLE": "true",
			"JVMFLAGS":   strings.Join(flags, " "),
		},
		Files: map[string]string{
			"/conf/zoo.cfg": s.zooCfg(containerData, insidePort, lines),
			containerJAAS:   s.jaas(),
		},
		Alias:    alias(id),
		Port:     insidePort,
		HostPort: port,
	}
	if e.host == loopback {
		made.HostIP = loopback
	}
	return made
}
