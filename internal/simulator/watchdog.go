package simulator

import (
	"context"
	"sync"
	"time"
)

// A Watchdog finds out for how long this process did not run when it should have. What it
// finds is the machine's fault, not the library's: a timer that is late by that much
// tells of a loss that much too late.
type Watchdog struct {
	stop    context.CancelFunc
	ended   sync.WaitGroup
	longest time.Duration // read it once ended
}

// StartWatchdog starts one, which ends with Late.
func StartWatchdog() *Watchdog {
	const every = 5 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watchdog{stop: cancel}
	w.ended.Go(func() {
		for ctx.Err() == nil {
			slept := time.Now()
			time.Sleep(every)
			w.longest = max(w.longest, time.Since(slept)-every)
		}
	})
	return w
}

// Late ends the watch and returns the longest time by which the process was late.
func (w *Watchdog) Late() time.Duration {
	w.stop()
	w.ended.Wait()
	return w.longest
}
