package reliance

import "time"

// Set adds a call of f, when d has passed.
func (l *Ledger) Set(d time.Duration, f func()) *Alarm {
	a := &Alarm{l.Now().Add(d), f}
	l.alarms[a] = struct{}{}
	return a
}

// At is when it is to be made, on the clock's line.
func (a *Alarm) At() time.Time { return a.at }

// Stop takes an alarm back. A call that is under way is not waited for.
func (l *Ledger) Stop(a *Alarm) { delete(l.alarms, a) }

// Due takes out the calls that are to be made by now, a warning that answers are slow
// last. Whoever makes them holds no mutex.
func (l *Ledger) Due(now time.Time) (rung []func()) {
	for a := range l.alarms {
		if !now.Before(a.at) {
			rung = append(rung, a.f)
			delete(l.alarms, a)
		}
	}
	if warning := l.warning(now); warning != nil {
		rung = append(rung, warning)
	}
	return rung
}
