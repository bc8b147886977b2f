package simulator_test

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes/internal/simulator"
)

// A bare is a go-zookeeper client, of which the library knows no session timeout.
type bare struct {
	*zk.Conn
	dial zk.Dialer

	mu   sync.Mutex // guards last
	last net.Conn
}

// openBare opens a session as somebody does who knows no recipes.Client.
func openBare(
	ctx context.Context, servers []string, dial zk.Dialer, hosts zk.HostProvider,
) (*bare, error) {
	b := &bare{dial: dial}
	conn, events, err := zk.Connect(servers, simSession, zk.WithDialer(b.reach),
		zk.WithHostProvider(hosts), zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	b.Conn = conn
	established := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(established) })
		for e := range events { // until the client closes them
			if e.State == zk.StateHasSession {
				once()
			}
		}
	}()
	select {
	case <-established:
		return b, nil
	case <-ctx.Done():
		b.Close()
		return nil, context.Cause(ctx)
	}
}

var _ simulator.Bare = (*bare)(nil)

// Bare implements simulator.Bare.
func (b *bare) Bare() *zk.Conn { return b.Conn }

func (b *bare) reach(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := b.dial(network, address, timeout)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.last = conn
	}
	return conn, err
}

// Close closes the client, and then its connection: the client itself can leave that
// open, with the session, where a request failed to be sent.
func (b *bare) Close() {
	b.Conn.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != nil {
		_ = b.last.Close()
	}
}

type silent struct{}

func (silent) Printf(string, ...any) {}
