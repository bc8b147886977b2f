package simulator

import (
	"time"

	"github.com/zkrecipes/recipes"
)

// bounds are what a worker's values for a lock do about the end of a hold.
type bounds struct {
	margin  time.Duration // see [recipes.WithLossMargin]
	maxHold time.Duration // see [recipes.WithMaxHold]; 0: none
}

// bounds draws what a worker's values for a lock have.
func (c Config) bounds(worker, lock int) (b bounds) {
	d := c.dice(worker, int(^uint16(1)), lock) // no owner has this number
	if !c.Bounded {
		return b
	}
	if d.percent(60) {
		b.margin = c.Session / time.Duration(4<<d.IntN(2)) // the most, or half of it
	}
	if d.percent(50) {
		b.maxHold = c.Session/8 + d.upTo(c.Session/2)
	}
	return b
}

// boundsOfStep draws what the lock value has that a worker makes in a step.
func (c Config) boundsOfStep(worker, number int) (b bounds) {
	d := c.dice(worker, int(^uint16(2)), number) // no owner has this number
	if d.percent(40) {
		b.margin = c.Session / time.Duration(4<<d.IntN(2))
	}
	if d.percent(30) {
		b.maxHold = c.Session/8 + d.upTo(c.Session/2)
	}
	return b
}

func (b bounds) options() []recipes.Option {
	opts := []recipes.Option{recipes.WithLossMargin(b.margin)}
	if b.maxHold > 0 {
		opts = append(opts, recipes.WithMaxHold(b.maxHold))
	}
	return opts
}

// checkMargins demands that nobody holds a lock within the loss margin of another who has
// lost it, together with whom he could not hold it.
func (an *analysis) checkMargins() error {
	for _, path := range an.paths {
		for _, b := range an.byPath[path] {
			for _, from := range an.live(b) {
				with := an.liveAt(path, from.begin, b)
				alive := len(with)
				for _, a := range an.byPath[path] {
					if a != b && an.mayStillStop(a, from.begin) {
						with = append(with, a)
					}
				}
				if len(with) == alive { // which checkExclusion looks at
					continue
				}
				if why := an.conflict(path, with); why != "" {
					return an.violation("margins", path, from.begin,
						"%s at %v, with those whose loss margin lasts: %v",
						why, from.begin, with)
				}
			}
		}
	}
	return nil
}

// mayStillStop tells whether a has lost the lock by then, and its margin is not over: it
// need not be one where its session was ended by force, or by its owner, or its znode
// deleted.
func (an *analysis) mayStillStop(a *acquisition, at time.Duration) bool {
	over := a.lostAt + a.margin - an.limits.Slack - eventDelay
	switch {
	case !a.held, !a.lost, at < a.lostAt, at >= over,
		a.releasing && a.releasingIn < a.lostIn,
		an.wasPaused(a.Worker, a.grantedAt, a.lostAt):
		return false
	}
	for _, end := range append(an.forcedEnds(a), an.closings[a.session]...) {
		if end <= at {
			return false
		}
	}
	return true
}
