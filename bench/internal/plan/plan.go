// Package plan says what is measured: which [Peers] do which [Scenarios], in which
// settings, and in which order. What comes out is a list of [Measurement].
package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/service"
)

// A Peer is one of those who are compared.
type Peer struct {
	Name    string
	Title   string
	Service service.Kind
	// Objects says of a Java process whether its threads "share" a lock object or have
	// one "each"; a Go process has "".
	Objects string
}

// The peers in Java; the others are those of package peer.
const (
	Curator     = "curator"
	CuratorEach = "curator-each"
)

// Peers are all of them, in the order of the tables.
var Peers = []Peer{
	{peer.Raw, "create + delete", service.ZooKeeper, ""},
	{peer.ZKLock, "zk.Lock", service.ZooKeeper, ""},
	{peer.Recipes, "recipes", service.ZooKeeper, ""},
	{peer.Cached, "recipes, caching", service.ZooKeeper, ""},
	{Curator, "Curator, one object", service.ZooKeeper, "share"},
	{CuratorEach, "Curator, an object per thread", service.ZooKeeper, "each"},
	{peer.Etcd, "etcd", service.Etcd, ""},
	{peer.Redsync, "redsync", service.Redis, ""},
}

// A Setting is where the servers are.
type Setting struct {
	Servers int           `json:"servers"`
	Delay   time.Duration `json:"delay"` // that each round trip takes longer
}

func (s Setting) String() string {
	servers, delay := "one server", "loopback"
	if s.Servers > 1 {
		servers = fmt.Sprintf("%d servers", s.Servers)
	}
	if s.Delay > 0 {
		delay = fmt.Sprintf("%d ms more per round trip", s.Delay.Milliseconds())
	}
	return servers + ", " + delay
}

// A Measurement is what one peer did in one scenario, in one round.
type Measurement struct {
	Setting  Setting       `json:"setting"`
	Scenario string        `json:"scenario"` // its ID
	Peer     string        `json:"peer"`     // its name
	Round    int           `json:"round"`
	Results  []load.Result `json:"results"` // of each process
}

// Fault tells why there is nothing to be said, "" where there is.
func (m *Measurement) Fault() string {
	for _, r := range m.Results {
		if r.Fault != "" {
			return r.Fault
		}
	}
	return ""
}

// Unsupported reports that the peer cannot do the scenario.
func (m *Measurement) Unsupported() bool {
	return slices.ContainsFunc(m.Results, func(r load.Result) bool {
		return r.Unsupported
	})
}

// Speed is what the processes together do in a second, the more the faster; false where
// the scenario is not about speed, or nothing came out.
func (m *Measurement) Speed(u Unit) (float64, bool) {
	if m.Unsupported() || m.Fault() != "" || u == Footprint || u == Upkeep {
		return 0, false
	}
	if u == Latency {
		median := m.Results[0].Median
		if median == nil || *median <= 0 {
			return 0, false
		}
		return 1 / median.Seconds(), true
	}
	var speed float64
	for _, r := range m.Results {
		if r.Took <= 0 {
			return 0, false
		}
		speed += float64(r.Ops) / r.Took.Seconds()
	}
	return speed, speed > 0
}

// LeastShare is the part of all operations that the process with the fewest had.
func (m *Measurement) LeastShare() (float64, bool) {
	if len(m.Results) < 2 || m.Unsupported() || m.Fault() != "" {
		return 0, false
	}
	var all, least int64
	for i, r := range m.Results {
		all += r.Ops
		if i == 0 || r.Ops < least {
			least = r.Ops
		}
	}
	return float64(least) / float64(max(all, 1)), all > 0
}

// Choose returns the elements that a list names, all for an empty list. A name stands for
// each ID that is it or begins with it and a hyphen.
func Choose[T any](all []T, id func(T) string, names []string) ([]T, error) {
	if len(names) == 0 {
		return all, nil
	}
	var chosen []T
	used := map[string]bool{}
	for _, e := range all {
		for _, name := range names {
			if id(e) == name || strings.HasPrefix(id(e), name+"-") {
				used[name] = true
				chosen = append(chosen, e)
				break
			}
		}
	}
	for _, name := range names {
		if !used[name] {
			return nil, fmt.Errorf("there is no %q", name)
		}
	}
	return chosen, nil
}
