package lossclock

import "time"

// A flow knows the last time in which nobody asked for contacts. Only in that time are
// the client's pings taken to be sent in time: what delays a contact, if only a little,
// delays a ping that is due meanwhile as well.
type flow struct {
	// It began at idle and ended at resumed; zero: since forever, and not yet.
	idle, resumed time.Time
	stopped       time.Time // the start of the present one; zero: there is none
	// Since when contacts are wanted; zero once one was asked for, or if none are.
	wanted time.Time
}

// ask records that a contact is asked for. The idle time ended when it was wanted, and
// not only now: the process may have stood still since.
func (f *flow) ask(terms Terms) {
	at := f.wanted
	if at.IsZero() {
		return
	}
	f.wanted = time.Time{}
	// A pause that is shorter than the time of a proof was no idle time: the contacts on
	// either side prove each other.
	if f.resumed.IsZero() || at.Sub(f.stopped) >= terms.reportPeriod() {
		f.idle, f.resumed = f.stopped, at
	}
	f.stopped = time.Time{}
}

// stop records that no contacts are wanted any more. If none was asked for, the idle time
// that was before goes on.
func (f *flow) stop(at time.Time) {
	if f.wanted.IsZero() {
		f.stopped = at
	}
	f.wanted = time.Time{}
}

// interrupt has the present idle time start over: only from then on are pings taken to be
// sent in time.
func (f *flow) interrupt(at time.Time) {
	if f.wanted.IsZero() {
		f.stopped = at
	}
}

// pinged is when the last of the client's pings was sent, at the earliest, that was due
// in the idle time and is proved by a contact which was sent at that time; zero if there
// is none.
func (f *flow) pinged(terms Terms, contact time.Time) time.Time {
	arrived := contact.Add(-terms.reportPeriod())
	if !f.resumed.IsZero() && arrived.After(f.resumed) {
		arrived = f.resumed
	}
	// Pings are T/3 apart, so one was sent in the T/3 before.
	sent := arrived.Add(-terms.Timeout / pingShare)
	if sent.Before(f.idle) {
		return time.Time{}
	}
	return sent
}

// lastPing is when the last ping was sent, at the earliest, that any contact can prove.
func (f *flow) lastPing(terms Terms) time.Time {
	if f.resumed.IsZero() {
		return time.Time{}
	}
	return f.pinged(terms, f.resumed.Add(terms.reportPeriod()))
}
