package worker

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time of all threads of these processes so far, to the
// nanosecond; nil if there is none or one cannot be read.
func cpuTime(pids ...int) *time.Duration {
	if len(pids) == 0 {
		return nil
	}
	var sum time.Duration
	for _, pid := range pids {
		// What the scheduler has counted, of a whole process.
		const scheduled = 2
		clock := int32(^pid<<3 | scheduled) //nolint:gosec // Linux has 2^22 at most
		var t unix.Timespec
		if err := unix.ClockGettime(clock, &t); err != nil {
			return nil
		}
		sum += time.Duration(t.Nano())
	}
	return &sum
}
