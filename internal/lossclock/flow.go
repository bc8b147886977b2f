package lossclock

import "time"

// A flow tells where contacts stood still while they were asked for: a process that was
// stopped, or a network. The client's pings stood still as well then.
type flow struct {
	// heard is when the last contact was answered since the flow was resumed, or else
	// when that was; zero while nobody asks for contacts.
	heard time.Time
	// inTime is up to when pings went out in time, as far as is known: when the last
	// contact was sent, or the flow resumed.
	inTime time.Time
	had    int64 // the session at that time
	stall  stall // the last one
}

// A stall is a time in which a contact was late: from when all went out in time still, to
// when it was answered. Several in short order are one.
type stall struct{ from, to time.Time }

func (f *flow) resume(session int64, at time.Time) {
	f.heard, f.inTime, f.had = at, at, session
}

func (f *flow) idle(terms Terms, at time.Time) {
	f.hear(terms, at)
	f.heard = time.Time{}
}

// in is the flow in another session, whose first contact was answered at that time. If it
// has begun since the flow was resumed that is not late, however long it took to begin:
// the leader has heard of the session then.
func (f *flow) in(session int64, answered time.Time) flow {
	next := *f
	next.stall = stall{}
	if session != f.had && !f.heard.IsZero() {
		next.heard = answered
	}
	return next
}

// note takes note of a contact.
func (f *flow) note(terms Terms, sent, answered time.Time) {
	f.hear(terms, answered)
	f.inTime = later(f.inTime, sent)
}

// hear judges whether a contact is late that is answered at that time, or is not. One is
// due every T/10; what is left for clocks that differ it may take besides.
func (f *flow) hear(terms Terms, at time.Time) {
	if f.heard.IsZero() {
		return
	}
	late := at.Sub(f.heard) > terms.Timeout/periodShare+terms.Timeout/slackShare
	if terms.Timeout > 0 && late {
		if !terms.pinged(f.inTime).Before(f.stall.to) {
			f.stall.from = f.inTime
		}
		f.stall.to = at
	}
	f.heard = at
}

// heldUp tells whether the stall may have held up the ping that a contact proves which
// was sent at that time.
func (f *flow) heldUp(terms Terms, contact time.Time) bool {
	latest := contact.Add(-terms.reportedWithin())
	return terms.pinged(contact).Before(f.stall.to) && latest.After(f.stall.from)
}
