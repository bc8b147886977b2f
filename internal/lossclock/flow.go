package lossclock

import "time"

// A flow knows the last time in which nobody asked for contacts. Only then do the
// client's pings go out in time, for all that is known: what holds up a contact, if only
// a little, holds up a ping that is due meanwhile as well.
type flow struct {
	// idle and resumed are from when until when that was; zero: for ever, and still.
	idle, resumed time.Time
	stopped       time.Time // since when it is so again; zero: it is not
	users         time.Time // since when there are users who have not asked yet
}

// ask takes note that a contact is asked for. The process has had users for a while then,
// and may have stood still since. What is shorter than the time of a proof was no idle
// time: the contacts on either side prove each other.
func (f *flow) ask(terms Terms) {
	at := f.users
	if at.IsZero() {
		return
	}
	f.users = time.Time{}
	if f.resumed.IsZero() || at.Sub(f.stopped) >= terms.reportedWithin() {
		f.idle, f.resumed = f.stopped, at
	}
	f.stopped = time.Time{}
}

// stop takes note that there are no users any more. If they have asked for nothing, it
// has been an idle time all the while.
func (f *flow) stop(at time.Time) {
	if f.users.IsZero() {
		f.stopped = at
	}
	f.users = time.Time{}
}

// pinged is when the last of the client's pings was sent, at the earliest, that a contact
// proves which was sent at that time, of those that were due in the idle time. It is zero
// where there was none.
func (f *flow) pinged(terms Terms, contact time.Time) time.Time {
	arrived := contact.Add(-terms.reportedWithin())
	if !f.resumed.IsZero() && arrived.After(f.resumed) {
		arrived = f.resumed
	}
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
	return f.pinged(terms, f.resumed.Add(terms.reportedWithin()))
}
