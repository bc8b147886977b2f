package dial

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/usercode"
)

// rounds stands between zk and a host provider, to know whether zk dials or pauses, and
// to make it pause.
type rounds struct {
	zk.HostProvider       // after start only of zk's goroutine that connects
	failed          error // of that goroutine: why the last Next named no server

	mu      sync.Mutex // guards what follows; not held while the host provider is asked
	pausing bool       // zk pauses before it dials again
	ended   bool
	paused  chan struct{} // closed by the first that finds both pausing and ended
}

func newRounds(p zk.HostProvider) *rounds {
	return &rounds{HostProvider: p, paused: make(chan struct{})}
}

// start initialises the host provider in zk's stead: it may look names up, and zk would
// wait for that without regard to ctx.
func (r *rounds) start(ctx context.Context, servers []string) error {
	err := within(ctx, "its Init", func() error { return r.HostProvider.Init(servers) })
	if err != nil {
		return fmt.Errorf("host provider: %w", err)
	}
	return nil
}

// Init does nothing: start did it.
func (r *rounds) Init([]string) error { return nil }

// Next returns the server to dial next. With retryStart zk fails the calls that wait for
// a connection, and pauses before it dials; once the rounds have ended it is always led
// there.
func (r *rounds) Next() (server string, retryStart bool) {
	r.failed = usercode.Contain("its Next", func() {
		server, retryStart = r.HostProvider.Next()
	})
	if r.failed != nil { // Dial returns it; a pause keeps zk from calling Next in a loop
		retryStart = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pausing = retryStart || r.ended
	r.tellPausedLocked()
	return server, r.pausing
}

// Len and Connected are the host provider's.
func (r *rounds) Len() (n int) {
	_ = usercode.Contain("its Len", func() { n = r.HostProvider.Len() })
	return n
}

// Connected is documented at Len.
func (r *rounds) Connected() {
	_ = usercode.Contain("its Connected", r.HostProvider.Connected)
}

// dialing records that zk dials.
func (r *rounds) dialing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pausing = false
}

func (r *rounds) isPausing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pausing
}

// end makes zk pause, at the latest when what it dials now has failed. What it returns is
// closed once zk does.
func (r *rounds) end() (paused <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.tellPausedLocked()
	return r.paused
}

func (r *rounds) tellPausedLocked() {
	if !r.pausing || !r.ended {
		return
	}
	select {
	case <-r.paused:
	default:
		close(r.paused)
	}
}
