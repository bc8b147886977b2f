package dial

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// hosts dials hosts by name. It looks a name up at each dial and keeps the addresses that
// it found last: a name service that is down must not keep a client from healthy servers.
// It is safe for concurrent use.
type hosts struct {
	// Lookup finds the addresses of a host.
	Lookup func(ctx context.Context, host string) ([]string, error)
	// Dial connects to one address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex // guards what follows; not held during a call
	last map[string][]string
}

// lookupShare is the part of a dial's timeout that a lookup may take if an earlier one
// has left addresses.
const lookupShare = 4

// newHosts returns what asks the system for names and addresses.
func newHosts() *hosts {
	return &hosts{
		// Looked up at each call: programs set the default resolver.
		Lookup: func(ctx context.Context, host string) ([]string, error) {
			return net.DefaultResolver.LookupHost(ctx, host)
		},
		Dial: (&net.Dialer{}).DialContext,
	}
}

// Connect connects to any of the addresses that a name stands for, in random order:
// several servers may share a name, and the first of them may be the one that accepts
// connections and does no more. The lookup takes at most timeout, and as much all dials
// together, if there are no more than three; of more, each has a third of it.
func (h *hosts) Connect(
	ctx context.Context, network, address string, timeout time.Duration,
) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ips, err := h.find(ctx, host, timeout)
	if err != nil {
		return nil, err
	}
	//nolint:gosec // no secret
	rand.Shuffle(len(ips), func(i, j int) { ips[i], ips[j] = ips[j], ips[i] })
	// One address that drops packets must not use up all the time, nor may many addresses
	// leave too little to each.
	each := timeout / time.Duration(min(max(len(ips), 1), 3))
	var errs []error
	for _, ip := range ips {
		conn, err := h.dialOne(ctx, network, net.JoinHostPort(ip, port), each)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

func (h *hosts) dialOne(
	ctx context.Context, network, address string, timeout time.Duration,
) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return h.Dial(ctx, network, address)
}

// find returns the addresses of a host: the kept ones if the lookup fails or takes long.
// A lookup that nobody waits for any more may still replace them.
func (h *hosts) find(
	ctx context.Context, host string, timeout time.Duration,
) ([]string, error) {
	kept := h.kept(host)
	enough := timeout
	if len(kept) > 0 {
		enough /= lookupShare
	}
	type answer struct {
		ips []string
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ips, err := h.Lookup(ctx, host)
		if err == nil && len(ips) == 0 {
			err = &net.DNSError{Err: "it has no address", Name: host, IsNotFound: true}
		}
		if err == nil {
			h.keep(host, ips)
		}
		answered <- answer{slices.Clone(ips), err}
	}()
	timer := time.NewTimer(enough)
	defer timer.Stop()
	err := error(&net.DNSError{
		Err: "the name service does not answer", Name: host, IsTimeout: true,
	})
	select {
	case a := <-answered:
		if a.err == nil {
			return a.ips, nil
		}
		err = a.err
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if len(kept) > 0 {
		return kept, nil
	}
	return nil, err
}

func (h *hosts) kept(host string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.last[host])
}

func (h *hosts) keep(host string, ips []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.last = map[string][]string{}
	}
	h.last[host] = ips
}
