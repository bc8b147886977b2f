package prove

import (
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// A bench takes events. It calls taken, if that is not nil, once it has.
type bench interface {
	take(e simulator.Event, taken func())
}

// A judge keeps the history of a round, by its own clock.
type judge struct {
	began time.Time
	round int
	keep  func(record) // may be nil

	mu      sync.Mutex // guards what follows
	history simulator.History
	counts  counts
	over    bool // nothing more is taken
}

// counts are what has happened.
type counts struct {
	Acquired int `json:"acquired"`
	Lost     int `json:"lost"`
	Closed   int `json:"closed"` // holds that a worker ended as it closed its client
	Written  int `json:"written"`
	Refused  int `json:"rejected"`
	Faults   int `json:"faults"`
}

func newJudge(round int, keep func(record)) *judge {
	return &judge{began: time.Now(), round: round, keep: keep}
}

// take implements bench.
func (j *judge) take(e simulator.Event, taken func()) {
	j.mu.Lock()
	if !j.over {
		e.At = time.Since(j.began)
		j.history = append(j.history, e)
		j.counts.add(e)
		if j.keep != nil {
			j.keep(record{Event: &e})
		}
	}
	j.mu.Unlock()
	if taken != nil {
		taken()
	}
}

func (c *counts) add(e simulator.Event) {
	switch e.Kind {
	case simulator.Granted:
		c.Acquired++
	case simulator.Lost:
		if e.Outcome == simulator.Closed {
			c.Closed++
		} else {
			c.Lost++
		}
	case simulator.Written:
		c.Written++
	case simulator.Refused:
		c.Refused++
	}
}

func (c *counts) sum(other counts) {
	c.Acquired += other.Acquired
	c.Lost += other.Lost
	c.Closed += other.Closed
	c.Written += other.Written
	c.Refused += other.Refused
	c.Faults += other.Faults
}

// soFar tells what has happened.
func (j *judge) soFar() counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts
}

// close ends the round, and returns its history.
func (j *judge) close() simulator.History {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = true
	return j.history
}
