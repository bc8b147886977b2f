package prove

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/witness"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// A Span is between which values something was.
type Span struct {
	Least time.Duration `json:"least"`
	Most  time.Duration `json:"most"`
}

// Times are how long something took.
type Times struct {
	Count  int           `json:"count"`
	Median time.Duration `json:"median"`
	High   time.Duration `json:"high"` // 99 of 100 took no longer
	Worst  time.Duration `json:"worst"`
}

// Ensemble is what was measured of one.
type Ensemble struct {
	// Releases are those of the servers, as far as they tell.
	Releases     []string      `json:"releases,omitempty"`
	Sessions     Span          `json:"sessions"` // timeouts that the servers grant
	Tick         time.Duration `json:"tick"`     // if two are the shortest session
	RoundTrip    Times         `json:"roundTrip"`
	Commit       Times         `json:"commit"`
	Silence      time.Duration `json:"silence"` // the longest time without an answer
	Elections    int           `json:"elections"`
	Clock        Span          `json:"clock"` // by which theirs are ahead of ours
	Acquisitions float64       `json:"acquisitions"`
	HandOver     Times         `json:"handOver"`
}

// sessionLimits finds out which session timeouts the servers grant.
func (a Access) sessionLimits(ctx context.Context) (s Span, err error) {
	for asked, to := range map[time.Duration]*time.Duration{
		100 * time.Millisecond: &s.Least, 24 * time.Hour: &s.Most,
	} {
		client, err := a.Connect(ctx, asked)
		if err != nil {
			return s, err
		}
		*to = client.SessionTimeout()
		client.Close()
	}
	return s, nil
}

// releases asks each server.
func (a Access) releases() (all []string) {
	if a.Release == nil {
		return nil
	}
	for _, server := range a.Servers {
		if release := a.Release(server); release != "" {
			all = append(all, release)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pace is what passes between two measurements.
const pace = time.Second / 2

// A gauge measures an ensemble, by a session of its own, and finds out whether it
// forgets.
type gauge struct {
	witness *witness.Witness
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu        sync.Mutex // guards what follows
	answered  time.Time  // when the last answer came
	silence   time.Duration
	epoch     int64 // of the last transaction
	elections int
	clock     Span
	clocked   bool
	trips     []time.Duration
	commits   []time.Duration
}

// startGauge starts one, which takes the client.
func startGauge(client *recipes.Client, path string, acl []zk.ACL) *gauge {
	ctx, cancel := context.WithCancel(context.Background())
	g := &gauge{stop: cancel, answered: time.Now()}
	g.witness = witness.Start(client, witness.Config{
		Path: path, ACL: acl, Pace: pace, Seen: g.seen,
	})
	g.ended.Go(func() {
		for ctx.Err() == nil {
			sent := time.Now()
			_, _, err := client.Get(path)
			if err == nil || errors.Is(err, zk.ErrNoNode) {
				g.mu.Lock()
				g.answerLocked()
				g.trips = append(g.trips, time.Since(sent))
				g.mu.Unlock()
			}
			faults.Sleep(ctx, pace)
		}
	})
	return g
}

// seen takes a confirmed write.
func (g *gauge) seen(stat *zk.Stat, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answerLocked()
	g.commits = append(g.commits, took)
	if epoch := stat.Mzxid >> 32; epoch > g.epoch {
		if g.epoch > 0 {
			g.elections += int(epoch - g.epoch)
		}
		g.epoch = epoch
	}
	// The servers took the time between the request and the answer.
	ahead := time.UnixMilli(stat.Mtime).Sub(time.Now().Add(-took / 2))
	if !g.clocked {
		g.clocked, g.clock = true, Span{ahead, ahead}
	}
	g.clock = Span{min(g.clock.Least, ahead), max(g.clock.Most, ahead)}
}

func (g *gauge) answerLocked() {
	now := time.Now()
	g.silence = max(g.silence, now.Sub(g.answered)-pace)
	g.answered = now
}

// silentFor is for how long there has been no answer by now.
func (g *gauge) silentFor() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, time.Since(g.answered)-pace)
}

// finish fills in what was measured, and returns what the servers have forgotten.
func (g *gauge) finish(e *Ensemble) error {
	g.stop()
	forgotten := g.witness.Finish() // closes the client
	g.ended.Wait()
	e.RoundTrip, e.Commit = timesOf(g.trips), timesOf(g.commits)
	e.Silence, e.Elections, e.Clock = g.silence, g.elections, g.clock
	return forgotten
}
