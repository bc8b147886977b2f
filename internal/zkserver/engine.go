package zkserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/network"
)

// defaultImage is the official image of the version that the tests are known to pass
// with.
const defaultImage = "zookeeper:3.9.3"

// An engine runs servers in containers.
type engine struct {
	provider *testcontainers.DockerProvider
	host     string // where the published ports are
	image    string
}

// findEngine returns the engine that testcontainers finds, if it answers and has the
// image. It looks once: where a pull fails, it would fail for every test.
var findEngine = sync.OnceValues(func() (*engine, error) {
	log.SetDefault(log.NewNoopLogger()) // it would greet on standard error
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// Not NewDockerProvider: that knows no default network, and puts every container into
	// one more of its own.
	found, err := testcontainers.ProviderDefault.GetProvider()
	if err != nil {
		return nil, err
	}
	provider, ok := found.(*testcontainers.DockerProvider)
	if !ok {
		return nil, fmt.Errorf("testcontainers gives a %T", found)
	}
	if err := provider.Health(ctx); err != nil {
		return nil, err
	}
	host, err := provider.DaemonHost(ctx)
	if err != nil {
		return nil, err
	}
	if host == "localhost" {
		host = loopback // it may mean ::1 too, where nothing is published
	}
	e := &engine{provider: provider, host: host, image: os.Getenv("ZOOKEEPER_IMAGE")}
	if e.image == "" {
		e.image = defaultImage
	}
	return e, e.pull()
})

// pull gets the image unless it is there. It tries once, while testcontainers would try
// for a quarter of an hour.
func (e *engine) pull() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	api := e.provider.Client()
	if _, err := api.ImageInspect(ctx, e.image); err == nil {
		return nil
	}
	response, err := api.ImagePull(ctx, e.image, client.ImagePullOptions{})
	if err == nil {
		err = response.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("pull %s: %w", e.image, err)
	}
	return nil
}

func (e *engine) prepare(ctx context.Context, s settings) (*Cluster, error) {
	c := &Cluster{
		kind:    "container",
		cleanUp: func(context.Context) error { return e.provider.Close() },
	}
	ports, err := freePorts(s.servers)
	if err != nil {
		return c, err
	}
	var nets, lines []string
	if s.servers > 1 {
		shared, err := network.New(ctx)
		if err != nil {
			return c, fmt.Errorf("zkserver: create a network: %w", err)
		}
		c.cleanUp = func(ctx context.Context) error {
			return errors.Join(shared.Remove(ctx), e.provider.Close())
		}
		nets = append(nets, shared.Name)
		// Its own name may be known to a server a moment later than the server wants to
		// listen there.
		lines = append(lines, "quorumListenOnAllIPs=true")
		for i := range s.servers {
			lines = append(lines, fmt.Sprintf("server.%d=%s:2888:3888", i+1, alias(i+1)))
		}
	}
	for i, port := range ports {
		made, err := e.provider.CreateContainer(ctx, e.request(i+1, port, nets, s, lines))
		if one, ok := made.(*testcontainers.DockerContainer); ok && one != nil {
			addr := net.JoinHostPort(e.host, strconv.Itoa(port))
			c.Servers = append(c.Servers, &Server{
				Addr: addr,
				host: &containerHost{one, e.provider.Client(), addr},
			})
		}
		if err != nil {
			return c, fmt.Errorf("zkserver: create a container of %s: %w", e.image, err)
		}
	}
	return c, nil
}

func alias(id int) string { return fmt.Sprintf("zk%d", id) }

// request describes a container of which the image's entry point has little to do: it
// finds a zoo.cfg, and so the same one serves as for a local server.
func (e *engine) request(
	id, port int, nets []string, s settings, lines []string,
) testcontainers.ContainerRequest {
	const inside = 2181
	expose := dockernet.MustParsePort(fmt.Sprintf("%d/tcp", inside))
	binding := dockernet.PortBinding{HostPort: strconv.Itoa(port)}
	if e.host == loopback {
		binding.HostIP = netip.MustParseAddr(loopback)
	}
	// A restarted member may come back with another address; Java would remember the old
	// one for half a minute.
	flags := append(
		[]string{"-Dsun.net.inetaddr.ttl=0", "-Dsun.net.inetaddr.negative.ttl=0"},
		s.jvm...,
	)
	request := testcontainers.ContainerRequest{
		Image:        e.image,
		ExposedPorts: []string{expose.String()},
		Env: map[string]string{
			"ZOO_MY_ID":  strconv.Itoa(id),
			"JMXDISABLE": "true",
			"JVMFLAGS":   strings.Join(flags, " "),
		},
		Files: []testcontainers.ContainerFile{{
			Reader:            strings.NewReader(s.zooCfg(containerData, inside, lines)),
			ContainerFilePath: "/conf/zoo.cfg",
			FileMode:          0o644,
		}},
		// A fixed port: one of the engine's choice would be another one after a restart.
		HostConfigModifier: func(hc *container.HostConfig) {
			hc.PortBindings = dockernet.PortMap{expose: {binding}}
		},
		Networks:       nets,
		NetworkAliases: map[string][]string{},
	}
	for _, name := range nets {
		request.NetworkAliases[name] = []string{alias(id)}
	}
	return request
}
