package prove

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// clockOff is the event of a clock that does not run as the locks need it.
const clockOff simulator.Kind = "clock"

// clockMost is by how much clocks may differ, in parts of a time, as docs/guarantees.md
// assumes it.
const clockMost = 20

// A reading is what another process said of its clock. It said that after it had been
// asked, and before the answer was heard.
type reading struct {
	asked, heard time.Duration // by the clock here
	told         time.Duration
}

// A clock compares that of another process with the one here, over a time. It is safe for
// concurrent use.
type clock struct {
	over time.Duration

	mu       sync.Mutex // guards what follows
	readings []reading  // from one that is so old on
	off      bool
}

// take returns, once, what is certainly wrong with the other clock, however long messages
// took, and otherwise "".
func (c *clock) take(r reading) (wrong string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readings = append(c.readings, r)
	for len(c.readings) > 1 && r.asked-c.readings[1].heard >= c.over {
		c.readings = c.readings[1:]
	}
	before := c.readings[0]
	ran := r.told - before.told
	least, most := r.asked-before.heard, r.heard-before.asked
	if c.off || least < c.over ||
		ran >= least-least/clockMost && ran <= most+most/clockMost {
		return ""
	}
	c.off = true
	return fmt.Sprintf("ran %v in a time of %v to %v: the locks assume clocks that run "+
		"at the same rate within 5 %%", round3(ran), round3(least), round3(most))
}

// clockEvent tells of the clock of a worker, or of the machine whose first worker it is.
func clockEvent(number int, whose, wrong string) simulator.Event {
	return simulator.Event{
		Kind: clockOff, ID: simulator.ID{Worker: number},
		Text: fmt.Sprintf("worker %d: the clock of its %s %s", number, whose, wrong),
	}
}

// askClocks asks all workers for their clocks, until ctx is done.
func (c *crew) askClocks(ctx context.Context) {
	for ; ctx.Err() == nil; faults.Sleep(ctx, c.Session/clockMost) {
		for _, w := range c.all() {
			w.askClock()
		}
	}
}
