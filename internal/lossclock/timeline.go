package lossclock

import "time"

// A Timeline is a clock that never goes back and does not stand still. On a suspended
// machine the monotonic clock stands still (Linux' CLOCK_MONOTONIC), while the leader's
// goes on; the wall clock can be set. So between two readings the greater distance
// counts, by the one or by the other: a wall clock that is set back prolongs nothing, and
// one that is set forward makes all that was before look older than it is. The zero
// Timeline is ready.
type Timeline struct {
	mono, wall time.Time     // the last reading
	offset     time.Duration // the wall clock's gain on the monotonic one since the first
	known      time.Duration // the part of offset that jumps account for
	jumps      []jump        // the last few, in order
}

// A jump is a time in which the monotonic clock stood still.
type jump struct {
	until time.Time     // by the monotonic clock
	ahead time.Duration // for how long it has stood still until then, in total
}

const (
	// unnoticed is the least that counts: the two clocks are read one after the other.
	unnoticed = time.Millisecond
	// jumpsKept bounds what is remembered for earlier readings (Earliest).
	jumpsKept = 8
)

// At is the time of a reading of both clocks. Readings must be given in order.
func (l *Timeline) At(mono, wall time.Time) time.Time {
	if !l.mono.IsZero() {
		l.offset += wall.Sub(l.wall) - mono.Sub(l.mono)
	}
	l.mono, l.wall = mono, wall
	var ahead time.Duration
	if n := len(l.jumps); n > 0 {
		ahead = l.jumps[n-1].ahead
	}
	stood := l.offset - l.known
	if stood >= unnoticed {
		ahead += stood
		l.jumps = append(l.jumps, jump{mono, ahead})
		l.jumps = l.jumps[max(0, len(l.jumps)-jumpsKept):]
	}
	if stood >= unnoticed || stood < 0 { // below 0: set back
		// From here on. A clock that was set back, and forward again, counts as a jump.
		l.known = l.offset
	}
	return mono.Add(ahead) // what is below unnoticed adds up in offset until it counts
}

// Earliest is the earliest time at which an earlier reading of the monotonic clock can
// have been. A jump that was noticed after the reading may have been before it, so it
// does not count.
func (l *Timeline) Earliest(mono time.Time) time.Time {
	for i := len(l.jumps) - 1; i >= 0; i-- {
		if mono.After(l.jumps[i].until) {
			return mono.Add(l.jumps[i].ahead)
		}
	}
	return mono
}
