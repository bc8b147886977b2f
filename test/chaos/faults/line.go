package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

const loopback = "127.0.0.1"

// LocalAddr is a port on loopback.
func LocalAddr(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// A Line is a proxy in front of one port of a server. It keeps its own port, on loopback,
// until it is closed.
type Line struct {
	proxy *toxiproxy.Proxy
	port  int
}

// Lines are open until they are closed, all together.
type Lines struct {
	server *toxiproxy.ApiServer

	mu  sync.Mutex // guards all
	all []*Line
}

// NewLines returns what opens lines.
func NewLines() *Lines {
	return &Lines{server: toxiproxy.NewServer(
		toxiproxy.NewMetricsContainer(nil), zerolog.Nop(),
	)}
}

// Open opens a line to an address.
func (l *Lines) Open(upstream string) (*Line, error) {
	proxy := toxiproxy.NewProxy(l.server, "line to "+upstream, LocalAddr(0), upstream)
	if err := proxy.Start(); err != nil {
		return nil, fmt.Errorf("start a proxy of %s: %w", upstream, err)
	}
	_, text, err := net.SplitHostPort(proxy.Listen)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	one := &Line{proxy: proxy, port: port}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, one)
	return one, err
}

// Close closes all lines, and the connections on them.
func (l *Lines) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.all {
		one.proxy.Stop()
	}
	l.all = nil
}

// Port is where the line begins.
func (l *Line) Port() int { return l.port }

// Addr is where the line begins.
func (l *Line) Addr() string { return LocalAddr(l.port) }

// What a toxic does, by toxiproxy's name for it.
const (
	Stall     = "stall"      // see stallToxic
	BlackHole = "timeout"    // drops everything, and hangs up when it ends
	Latency   = "latency"    // delays everything
	ResetPeer = "reset_peer" // hangs up at the first packet; new connections are reset
)

// The directions of a line; the way to the server is upstream.
const (
	ToServer   = "upstream"
	FromServer = "downstream"
)

// A Toxic is put on one direction of a line. Two of the same kind and direction cannot be
// on the same line.
type Toxic struct {
	Kind       string         `json:"type"`
	Name       string         `json:"name"`
	Direction  string         `json:"stream"`
	Attributes map[string]int `json:"attributes"`
}

// Put puts toxics on lines, and returns what takes them off again.
func Put(lines []*Line, toxics ...Toxic) (remove func() error, err error) {
	var removals []func() error
	remove = func() error { return InParallel(removals) }
	for _, l := range lines {
		for _, t := range toxics {
			t.Name = t.Kind + " " + t.Direction
			text, err := json.Marshal(t)
			if err != nil {
				return nil, err
			}
			_, err = l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
			if err != nil {
				return nil, errors.Join(
					fmt.Errorf("put %s on the %s: %w", t.Name, l.proxy.Name, err),
					remove(),
				)
			}
			removals = append(removals, func() error {
				err := l.proxy.Toxics.RemoveToxic(context.Background(), t.Name)
				if err != nil {
					return fmt.Errorf("take %s off the %s: %w", t.Name, l.proxy.Name, err)
				}
				return nil
			})
		}
	}
	return remove, nil
}

// InParallel calls all of them at once and joins their errors.
func InParallel(calls []func() error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(calls))
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
