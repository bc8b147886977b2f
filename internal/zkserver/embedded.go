package zkserver

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/zktest"
)

// embedded is the source of servers in this process: zktest in the place of the real one.
type embedded struct {
	keeper  bool     // as ClickHouse Keeper
	network *network // nil: that of the machine
}

func (e embedded) prepare(_ context.Context, s settings) (*Cluster, error) {
	if s.route != nil || s.kerberos != nil {
		return nil, errors.New(
			"zkserver: an embedded server takes no RoutePeers or Kerberos",
		)
	}
	options, err := s.embeddedOptions()
	if err != nil {
		return nil, err
	}
	if e.keeper { // with ZooKeeper's timeouts: tests wait for sessions to end
		options = append(options, zktest.WithKeeper(),
			zktest.WithMinSessionTimeout(2*s.tick))
	}
	cluster, err := zktest.New(append(options,
		zktest.WithServers(s.servers), zktest.WithTick(s.tick),
		zktest.WithMaxSession(s.maxSession), zktest.WithShuffle(),
		zktest.WithSASLUsers(s.saslUsers),
	)...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{kind: "embedded", cleanUp: func(context.Context) error {
		cluster.Close()
		return nil
	}}
	addrs, dial := []string(nil), zk.Dialer(nil)
	if e.network != nil {
		addrs, dial = e.network.join(cluster), e.network.dial
	} else {
		addrs = cluster.Addrs()
	}
	for i, addr := range addrs {
		c.Servers = append(c.Servers, &Server{
			Addr: addr, host: &embeddedHost{server: cluster.Server(i)}, dial: dial,
		})
	}
	return c, nil
}

// An embeddedHost is one server of a zktest.Cluster.
type embeddedHost struct {
	server *zktest.Server
	killed atomic.Bool
}

var errKilled = errors.New("it was killed")

func (h *embeddedHost) start(context.Context) error {
	h.killed.Store(false)
	h.server.Start()
	return nil
}

func (h *embeddedHost) freeze(context.Context) error {
	h.server.Freeze()
	return h.gone()
}

func (h *embeddedHost) thaw(context.Context) error {
	h.server.Thaw()
	return h.gone()
}

func (h *embeddedHost) kill(context.Context) error {
	err := h.gone()
	h.killed.Store(true)
	h.server.Stop()
	return err
}

func (h *embeddedHost) gone() error {
	if h.killed.Load() {
		return errKilled
	}
	return nil
}

func (h *embeddedHost) ended(context.Context) error  { return h.gone() }
func (h *embeddedHost) remove(context.Context) error { return nil }
func (h *embeddedHost) dataDir() string              { return "none" }
func (h *embeddedHost) log(context.Context) string   { return "" }
