package plan

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/service"
)

// A Doer does a load by n workers of a peer at the same time.
type Doer interface {
	Do(ctx context.Context, peer string, n int, l load.Load) []load.Result
}

// Servers are where a peer finds its service.
type Servers struct {
	Addrs []string
	PIDs  []int // their processes, if they can be watched
}

// A Plan is what is measured in each setting.
type Plan struct {
	Peers     []Peer
	Scenarios []Scenario
	Rounds    int
	Time      time.Duration      // of one measurement
	Least     int64              // operations of one, however long they take
	Next      func(what string)  // is told what is about to be measured
	Done      func(*Measurement) // and what came out
}

// Count is the number of measurements in one setting.
func (p *Plan) Count() int { return len(p.Peers) * len(p.Scenarios) * p.Rounds }

// Run does all rounds in one setting. In each round all peers do a scenario one right
// after the other, in an order by chance, so that they meet the same machine. It ends
// early when ctx does.
func (p *Plan) Run(
	ctx context.Context, d Doer, s Setting, at map[service.Kind]Servers,
) error {
	for round := range p.Rounds {
		for _, scenario := range p.Scenarios {
			for _, i := range mathrand.Perm(len(p.Peers)) {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				peer := p.Peers[i]
				p.Next(fmt.Sprintf("%s: %s by %s", s, scenario.ID, peer.Name))
				l := p.load(&scenario, s, at[peer.Service])
				m := &Measurement{
					Setting: s, Scenario: scenario.ID, Peer: peer.Name, Round: round,
					Results: d.Do(ctx, peer.Name, max(1, scenario.Processes), l),
				}
				if ctx.Err() == nil { // else it was interrupted
					p.Done(m)
				}
			}
		}
	}
	return nil
}

// load completes a scenario's load.
func (p *Plan) load(scenario *Scenario, s Setting, servers Servers) load.Load {
	const (
		warmUps = 4 // in the time of a measurement
		// How long a waiter takes to be in its queue, but for the round trips.
		settle = 3 * time.Millisecond
	)
	l := scenario.Load
	l.Kind = cmp.Or(l.Kind, load.Mutex)
	l.Paths = max(1, l.Paths)
	l.Servers, l.PIDs = servers.Addrs, servers.PIDs
	l.Path = "/bench-" + rand.Text()[:10]
	l.Settle = settle + 3*s.Delay
	l.Time = cmp.Or(l.Time, p.Time)
	l.WarmUp, l.Least = cmp.Or(l.WarmUp, p.Time/warmUps), p.Least
	return l
}

// WarmUp has a peer use locks for so long, and forgets what came out.
func (p *Plan) WarmUp(
	ctx context.Context, d Doer, peer Peer, servers Servers, long time.Duration,
) {
	p.Next("warming up " + peer.Name)
	warm := Plan{Time: long}
	scenario := Scenario{Load: load.Load{
		Shape: load.Cycle, Sessions: 2, Users: 4, Paths: 4,
	}}
	d.Do(ctx, peer.Name, 1, warm.load(&scenario, Setting{}, servers))
}

// OnePath is a load on a path of its own, of which the users are yet to be said.
func (p *Plan) OnePath(addrs []string) load.Load {
	scenario := Scenario{Load: load.Load{Shape: load.Cycle, Sessions: 1}}
	return p.load(&scenario, Setting{}, Servers{Addrs: addrs})
}

// plural writes a number with its noun, and commas: "1,000 users".
func plural(n int, noun string) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	if n != 1 {
		noun += "s"
	}
	return text + " " + noun
}
