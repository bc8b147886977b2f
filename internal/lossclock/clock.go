// Package lossclock tells until when a ZooKeeper session can be relied on, and when the
// next heartbeat is due. It is arithmetic on times that it is given: it reads no clock,
// asks no server, and locks nothing.
//
// The leader ends a session no earlier than T, the session timeout, after it last heard
// of that session (SessionTrackerImpl, ExpiryQueue: rounded up to a tick, never down). So
// what matters is which of our requests has certainly reached the leader, and when, by
// our own clock, it was sent. To count from the moment at which a disconnect was noticed
// would be late by the time without responses before it, up to 2/3 T (CURATOR-460).
//
// Not every answer shows that the leader has heard of us. A follower answers reads and
// pings by itself, also for as long as it takes to notice that it has lost its leader
// (syncLimit, five ticks by default). So only writes that the leader judged, and syncs
// that it answered, are contacts. And even these do not reach the leader's session
// tracker. What keeps a session alive is the follower's report of the sessions that it
// has heard from, sent when the leader pings it, every half tick (Leader.lead,
// LearnerHandler.ping, Learner.ping). If the follower dies before that, the report is
// lost.
//
// The leader's period is never shorter than half a tick, and usually a little longer:
// Leader.lead waits for at least tickTime/2 and then works, before it waits again. So a
// period is taken to be half a tick and an allowance of a twentieth of the tick, at least
// 25 ms. Half of that is for a leader whose clock is slow. See lateShare for what was
// measured.
//
// There are three kinds of evidence, and the latest counts:
//
//   - A contact that another one has proved. The other was sent at least one period of
//     the leader's after the first was answered, and the leader answered it. So the two
//     servers were in touch, in order, and the leader's ping was between the two
//     contacts. If they came through different servers, there was a handshake between
//     them.
//   - The client's pings before a contact, one every T/3. A contact proves a ping just as
//     it proves an earlier contact: one that is at least a period older. Only those pings
//     count that were due while nobody asked for contacts. From then on contacts show
//     more, and whatever delays a contact (a process that was stopped, a network that
//     stood still) delays a ping as well, and need not be noticed.
//   - A handshake, in which the leader has a part (Leader.revalidateSession), by itself.
//     If a client does not tell when it began, it began after the client was seen without
//     a connection.
//
// Assumptions: ticks are as [Terms] has them; the leader's pings come within half a tick
// and the allowance of each other, by this process's clock; the pings of an idle client,
// which nobody asks for contacts, are sent in time, unless [Clock.Interrupt] says
// otherwise; and the clocks of this process and the leader differ by less than one part
// in twenty, which is left of T.
//
// Covered only by the fencing token: a leader that pings later than that, because its
// machine is overloaded or its JVM stands still, while the follower dies; a ping or a
// report of the leader's that is under way for so long that the second contact overtakes
// it, while the follower dies; pings of an idle client that were delayed; and a leader
// that has lost its quorum, which answers a sync for up to a tick and a half after the
// others have elected the next (Leader.processSync asks nobody; a write does).
package lossclock

import "time"

const (
	pingShare  = 3  // the client pings every T/3
	slackShare = 20 // T/20 is left for clocks that differ, and for the notice

	// marginShare is what a margin may take, so that more than half of T is left for the
	// evidence to come.
	marginShare = 4

	// longestTick is the longest that is assumed if the tick is not known.
	longestTick = 10 * time.Second

	// lateShare and leastLate are the allowance for a late ping of the leader's, by this
	// process's clock: a share of the tick, and at least that long. A leader whose clock
	// is slow by one part in twenty takes half of the share. The rest is for its work, of
	// which no bound is known. How late the pings of ZooKeeper 3.8.0 were, three
	// servers on two cores, as seen on the wire to the worse of both followers:
	//
	//	load                   tick    periods  median  90 %    99 %   not allowed for
	//	1                      200 ms  297      0.4 ms  1.2 ms  4 ms   none
	//	1 to 3                 2 s     78       0.7 ms  9 ms    88 ms  1 %
	//	about 10               200 ms  289      0.7 ms  8 ms    49 ms  3 %
	//	10 to 15               2 s     58       1.2 ms  23 ms   89 ms  2 %
	//	7 to 10, and writers   2 s     95       1.1 ms  93 ms   1.0 s  9 %
	//	10 to 15, and writers  200 ms  140      1.8 ms  159 ms  1.0 s  19 %
	//
	// Load is the machine's load average. In the last two rows eight clients wrote as
	// fast as they could, with two threads that did nothing but spin.
	lateShare = 20
	leastLate = 25 * time.Millisecond

	// unknownGood is for how long after a contact a session of unknown T is relied on.
	unknownGood = time.Second
)

// The heartbeat's period.
const (
	periodShare   = 10 // a contact at least every T/10
	hasteShare    = 20 // twice as often until the first one is proved
	slowShare     = 40 // if answers take so long that the age of evidence counts
	unknownPeriod = 200 * time.Millisecond
	unknownWatch  = 5 * time.Second // if nothing depends on a session of unknown T
)

// Terms are what is known of a session.
type Terms struct {
	// Timeout is T, as negotiated with the server; 0 if it is not known. Then a session
	// is relied on for a second after its last contact. The leader may not have heard of
	// that contact, but of a ping up to T/3 and a period before it. So that is in time if
	// T is at least 3 s and at least two ticks; servers grant at least 4 s by default.
	Timeout time.Duration
	// Tick is the servers' tickTime; 0 if it is not known. Then it is assumed to be at
	// most T/2, as servers grant no less than two ticks by default (minSessionTimeout),
	// and at most ten seconds. Behind an observer that is connected to a follower
	// (observerMasterPort) reports take two hops, each by a ping of its own every half
	// tick: that is as if ticks were twice as long (ObserverMaster.touch, which writes
	// into the follower's own table).
	Tick time.Duration
}

// tick is the servers' tickTime or, if it is not known, the longest that is assumed.
func (t Terms) tick() time.Duration {
	if t.Tick > 0 {
		return t.Tick
	}
	return min(t.Timeout/2, longestTick)
}

// reportPeriod is the time within which a follower reports whom it has heard from: half a
// tick, rounded up, and the allowance for a late ping of the leader's.
func (t Terms) reportPeriod() time.Duration {
	tick := t.tick()
	return tick - tick/2 + max(tick/lateShare, leastLate)
}

// good is for how long a session is relied on after its leader has heard of it.
func (t Terms) good() time.Duration { return t.Timeout - t.Timeout/slackShare }

// Workable is false where T is so short for the tick that no proof would come in time:
// below LeastTimeout.
func (t Terms) Workable() bool {
	return t.Timeout <= 0 || t.Timeout >= t.LeastTimeout()
}

// LeastTimeout is the shortest T with which a lock can be held; 0 if the tick is not
// known. A proved contact is at most a period and T/5 old, see [Clock.NextSync]: so T/12
// is left for beats and answers that are late.
func (t Terms) LeastTimeout() time.Duration {
	if t.Tick <= 0 {
		return 0
	}
	return t.reportPeriod() / 2 * 3
}

// LongestAnswer is the time that each answer must stay below, or a hold is lost although
// nothing else is wrong. A contact is proved by one that is sent a period of the leader's
// after its answer, and that one counts when it is answered itself. So evidence can be as
// old as two answers and that period, one interval of the heartbeat (if answers were fast
// until then), and two of its shorter intervals for slow answers, see [Clock.NextSync].
func (t Terms) LongestAnswer() time.Duration {
	if t.Timeout <= 0 {
		return unknownGood - unknownPeriod
	}
	return max(0, t.good()-t.reportPeriod()-
		t.Timeout/periodShare-2*t.Timeout/slowShare) / 2
}

// LongestMargin is the longest loss margin with which no hold is lost while nothing is
// wrong: a quarter of T, or what is left of T behind evidence that is as old as it
// becomes in the long run, and a late beat.
func (t Terms) LongestMargin() time.Duration {
	if t.Timeout <= 0 {
		return unknownGood / marginShare
	}
	spare := t.good() - t.reportPeriod() -
		2*t.Timeout/periodShare - t.Timeout/hasteShare
	return max(0, min(t.Timeout/marginShare, spare))
}

// TimeoutFor is the shortest session timeout that has room for a margin; with long ticks
// a longer one is needed.
func TimeoutFor(margin time.Duration) time.Duration { return marginShare * margin }

// A Clock keeps the contacts of one session after the other. The zero Clock is ready. All
// times that it is given must come from one clock that never goes back; see [Timeline].
type Clock struct {
	session int64
	last    time.Time // when the last contact was sent; zero: there was none
	// recent are in order, without those that came close behind another. The first is the
	// latest that is proved, if one is; the others are not proved to be reported yet.
	recent []contact

	terms    Terms     // of the last contact
	reported time.Time // the latest of all evidence so far, by terms
	idle     idleTime
}

type contact struct{ sent, answered time.Time }

// provedBy reports whether a contact that was sent at that time proves that c was
// reported to the leader: a report period after c's answer, or later. When before that
// answer the server heard of c is not known.
func (c contact) provedBy(sent time.Time, reportPeriod time.Duration) bool {
	return sent.Sub(c.answered) >= reportPeriod
}

// Wanted says that contacts are wanted from now on: one to begin with, and then at least
// one every T/10. Those who only wait, and need no proof yet, want none.
func (c *Clock) Wanted(at time.Time) { c.idle.wanted = at }

// Ask says that a contact is asked for.
func (c *Clock) Ask(terms Terms) { c.idle.ask(terms) }

// Unwanted says that no contacts are wanted any more: the session is idle.
func (c *Clock) Unwanted(at time.Time) { c.idle.stop(at) }

// Interrupt says that the process stood still until that time, while no contacts were
// wanted: the pings that were due before may be late.
func (c *Clock) Interrupt(at time.Time) { c.idle.interrupt(at) }

// Note records a contact in a session. One that was sent before another that was recorded
// proves nothing new.
func (c *Clock) Note(terms Terms, session int64, sent, answered time.Time) {
	if c.session != session { // the process goes on, so its idle times do
		*c = Clock{session: session, idle: c.idle}
	}
	if !sent.After(c.last) {
		return
	}
	c.last = sent
	period := terms.reportPeriod()
	// Contacts that are close together prove the same: a busy lock makes thousands within
	// a period, of which about eight are kept.
	if n := len(c.recent); n == 0 || sent.Sub(c.recent[n-1].sent) >= period/8 {
		c.recent = append(c.recent, contact{sent, answered})
	}
	// This contact proves those that were answered a period before it was sent. The
	// latest of them is all that is needed of them.
	for len(c.recent) > 1 && c.recent[1].provedBy(sent, period) {
		c.recent = c.recent[1:]
	}
	// What was evidence with a shorter tick may be none with a longer one.
	if c.terms != terms {
		c.terms, c.reported = terms, time.Time{}
	}
	c.reported = later(c.reported, c.evidence(terms))
}

// Last is when the last contact of the session was sent; zero: there was none.
func (c *Clock) Last(session int64) time.Time {
	if c.session != session {
		return time.Time{}
	}
	return c.last
}

// GoodUntil is until when the session can be relied on, given when its last handshake
// began, if that is known; false if there is no evidence at all.
func (c *Clock) GoodUntil(
	terms Terms, session int64, handshake time.Time,
) (until time.Time, ok bool) {
	if terms.Timeout <= 0 {
		last := c.Last(session)
		return last.Add(unknownGood), !last.IsZero()
	}
	reported := c.Reported(terms, session, handshake)
	return reported.Add(terms.good()), !reported.IsZero()
}

// Outlasts reports whether a session that is relied on until margin before its time, and
// no longer, will have newer evidence by then if nothing is wrong: the next contact is
// proved in time, with a beat to spare. It need not be so after an idle time, of which
// only the client's pings are known, and less so if answers are slow.
func (c *Clock) Outlasts(
	terms Terms, session int64, handshake time.Time, margin time.Duration,
) bool {
	until, ok := c.GoodUntil(terms, session, handshake)
	if !ok || terms.Timeout <= 0 || c.Last(session).IsZero() {
		return ok // there is no rule of proofs for an unknown T, and none yet to wait for
	}
	reported := c.Reported(terms, session, handshake)
	for _, next := range c.recent {
		if !next.sent.After(reported) {
			continue
		}
		// The first contact that is newer than the evidence is the next to be proved, by
		// one that is sent a period after its answer. What matters is that one's answer.
		proof := next.answered.Add(terms.reportPeriod() + terms.Timeout/hasteShare)
		if margin > 0 && proof.After(until.Add(-margin)) {
			return false
		}
		if proved := reported.Equal(c.recent[0].sent); !proved {
			// After an idle time: the contacts that follow prove the later pings, too, up
			// to the last that was due.
			until = later(until, c.idle.lastPing(terms).Add(terms.good()))
		} else if c.Answer() > terms.LongestAnswer()-margin/2 {
			return true // while answers are that slow, no better evidence is to come
		}
		return !proof.Add(c.Answer()).After(until.Add(-margin))
	}
	return true // the handshake is later than all of them
}

// Answer is how long an answer takes: the longest of the recent contacts' answers.
func (c *Clock) Answer() (longest time.Duration) {
	for _, r := range c.recent {
		longest = max(longest, r.answered.Sub(r.sent))
	}
	return longest
}

// Reported is the latest time at which the leader is known to have heard of the session;
// zero if there is none. With the same terms it never goes back.
func (c *Clock) Reported(terms Terms, session int64, handshake time.Time) time.Time {
	if c.Last(session).IsZero() { // the contacts are another session's
		return handshake
	}
	reported := c.reported
	if c.terms != terms {
		reported = c.evidence(terms)
	}
	return later(reported, handshake)
}

// evidence is what the recent contacts, and the pings before them, prove.
func (c *Clock) evidence(terms Terms) (reported time.Time) {
	period := terms.reportPeriod()
	if first := c.recent[0]; first.provedBy(c.last, period) {
		reported = first.sent
	}
	return later(reported, c.idle.pinged(terms, c.last))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// NextSync is when the next sync is due, if the last one was sent at lastSync. needed,
// that something depends on the session, counts only if T is not known: otherwise the
// period is the same.
//
// In the long run, a proved contact is at most a period of the leader's and two of the
// heartbeat old. After an idle time only the client's pings before each contact speak for
// the session: so contacts come twice as often, and one just when it proves the first. If
// answers are slow, a proved contact is older by two of them, so less time is left for
// periods: a sync is due whether the one before was answered or not, and even more often
// if there would not be enough left.
func (c *Clock) NextSync(
	terms Terms, session int64, handshake, lastSync time.Time, needed bool,
) time.Time {
	last := c.Last(session)
	if lastSync.After(last) {
		last = lastSync
	}
	switch t := terms.Timeout; {
	case t <= 0 && needed:
		return last.Add(unknownPeriod)
	case t <= 0:
		return last.Add(unknownWatch)
	case c.slow(terms):
		return last.Add(t / slowShare)
	case !c.lags(terms, session, handshake):
		return last.Add(t / periodShare)
	}
	// The evidence lags: a sync at the very time at which it proves the oldest contact
	// that is not proved yet is worth more than one a little before.
	next := last.Add(terms.Timeout / hasteShare)
	proof := c.recent[0].answered.Add(terms.reportPeriod())
	if proof.After(last) && proof.Before(next) {
		next = proof
	}
	return next
}

// slow reports whether two answers and a period of the leader's leave less of T than two
// periods of the heartbeat and a late beat need.
func (c *Clock) slow(terms Terms) bool {
	return 2*c.Answer()+terms.reportPeriod()+
		2*terms.Timeout/periodShare+terms.Timeout/hasteShare > terms.good()
}

// lags reports whether the evidence was older, at the last contact, than in the long run:
// then it is a period of the leader's and one of the heartbeat old. The other is for late
// beats. If it lags, it lags behind a contact, so recent is not empty.
func (c *Clock) lags(terms Terms, session int64, handshake time.Time) bool {
	behind := c.Last(session).Sub(c.Reported(terms, session, handshake))
	return behind > terms.reportPeriod()+2*terms.Timeout/periodShare
}
