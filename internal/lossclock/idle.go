package lossclock

import "time"

// An idleTime is the last time in which nobody asked for contacts. Only in that time are
// the client's pings taken to be sent in time: what delays a contact, if only a little,
// delays a ping that is due meanwhile as well.
type idleTime struct {
	began, ended time.Time // zero: since forever, and not yet
	present      time.Time // when the one that goes on began; zero: none does
	// Since when contacts are wanted; zero once one was asked for, or if none are.
	wanted time.Time
}

// ask records that a contact is asked for. The idle time ended when it was wanted, and
// not only now: the process may have stood still since.
func (i *idleTime) ask(terms Terms) {
	at := i.wanted
	if at.IsZero() {
		return
	}
	i.wanted = time.Time{}
	// A pause that is shorter than the time of a proof was no idle time: the contacts on
	// either side prove each other.
	if i.ended.IsZero() || at.Sub(i.present) >= terms.reportPeriod() {
		i.began, i.ended = i.present, at
	}
	i.present = time.Time{}
}

// stop records that no contacts are wanted any more. If none was asked for, the idle time
// that was before goes on.
func (i *idleTime) stop(at time.Time) {
	if i.wanted.IsZero() {
		i.present = at
	}
	i.wanted = time.Time{}
}

// interrupt has the present idle time start over: only from then on are pings taken to be
// sent in time.
func (i *idleTime) interrupt(at time.Time) {
	if i.wanted.IsZero() {
		i.present = at
	}
}

// pinged is when the last of the client's pings was sent, at the earliest, that was due
// in the idle time and is proved by a contact which was sent at that time; zero if there
// is none.
func (i *idleTime) pinged(terms Terms, contact time.Time) time.Time {
	arrived := contact.Add(-terms.reportPeriod())
	if !i.ended.IsZero() && arrived.After(i.ended) {
		arrived = i.ended
	}
	// Pings are T/3 apart, so one was sent in the T/3 before.
	sent := arrived.Add(-terms.Timeout / pingShare)
	if sent.Before(i.began) {
		return time.Time{}
	}
	return sent
}

// lastPing is when the last ping was sent, at the earliest, that any contact can prove.
func (i *idleTime) lastPing(terms Terms) time.Time {
	if i.ended.IsZero() {
		return time.Time{}
	}
	return i.pinged(terms, i.ended.Add(terms.reportPeriod()))
}
