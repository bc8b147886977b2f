package zkserver

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/zkrecipes/recipes/zktest"
)

// embedded is the site of servers in this process: zktest in the place of the real one. It takes JVM flags for nothing.
type embedded struct{}

func (embedded) place(_ context.Context, s settings) (*Cluster, error) {
	if len(s.config) > 0 || s.route != nil {
		return nil, errors.New("zkserver: an embedded server takes neither Config nor RoutePeers")
	}
	service, err := zktest.New(zktest.WithServers(s.servers), zktest.WithTick(s.tick), zktest.WithMaxSession(s.maxSession))
	if err != nil {
		return nil, err
	}
	c := &Cluster{kind: "embedded", tidy: func(context.Context) error {
		service.Close()
		return nil
	}}
	for i, addr := range service.Addrs() {
		c.Servers = append(c.Servers, &Server{Addr: addr, host: &member{peer: service.Peer(i)}})
	}
	return c, nil
}

// A member is one server of a zktest.
type member struct {
	peer   *zktest.Peer
	killed atomic.Bool
}

var errKilled = errors.New("it was killed")

func (m *member) start(context.Context) error {
	m.killed.Store(false)
	m.peer.Start()
	return nil
}

func (m *member) freeze(context.Context) error {
	m.peer.Freeze()
	return m.gone()
}

func (m *member) thaw(context.Context) error {
	m.peer.Thaw()
	return m.gone()
}

func (m *member) kill(context.Context) error {
	err := m.gone()
	m.killed.Store(true)
	m.peer.Stop()
	return err
}

func (m *member) gone() error {
	if m.killed.Load() {
		return errKilled
	}
	return nil
}

func (m *member) ended(context.Context) error  { return m.gone() }
func (m *member) remove(context.Context) error { return nil }
func (m *member) dataDir() string              { return "none" }
func (m *member) log(context.Context) string   { return "" }
