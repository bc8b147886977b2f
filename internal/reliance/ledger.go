package reliance

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/outcome"
)

// A Ledger knows the znodes of this process that live in the sessions of one connection,
// and until when they can be relied on. It is guarded by its owner's mutex.
type Ledger struct {
	clock
	sessionID func() int64 // see Config.SessionID
	closed    bool         // see Close

	used     bool      // there are users; see Resume
	wanted   bool      // contacts are: some users need them; see update
	creating int       // creates under way
	resting  int       // how many of ephemerals are far from their turn; see Rest
	lookBy   time.Time // when somebody is to look again; see LookBy

	// ephemerals are the znodes that are tracked, by path: if another's znode is found in
	// a queue, its path tells whether it is one of this process, which needs no watch.
	ephemerals map[string]*tracked
	alarms     map[*Alarm]struct{}

	log    *slog.Logger // receives the warning that answers are slow; nil: nobody does
	warned time.Time    // when it last did
}

// A Config is what a Ledger is given. Its functions are called with the mutex held.
type Config struct {
	// SessionID returns the id of the present session.
	SessionID func() int64
	// Timeout returns the negotiated session timeout, 0 if it is unknown.
	Timeout func() time.Duration
	// Advice is what a loss says is to be done if Timeout is unknown.
	Advice string
	// LastHandshake returns when the last handshake of that session began; nil if the
	// connection does not tell.
	LastHandshake func(session int64) (time.Time, bool)
	// Wall is what the wall clock says, of a reading of the clock.
	Wall func(now time.Time) time.Time
}

// New returns a Ledger of no znodes.
func New(c Config) Ledger {
	return Ledger{
		clock: clock{
			wall: c.Wall, timeout: c.Timeout, lastHandshake: c.LastHandshake,
			advice: c.Advice,
		},
		sessionID:  c.SessionID,
		ephemerals: map[string]*tracked{}, alarms: map[*Alarm]struct{}{},
	}
}

// Close says that the connection was closed: nothing can be relied on any more.
func (l *Ledger) Close() { l.closed = true }

// An Ephemeral is a znode of this process that lives in the session.
type Ephemeral interface {
	// Lose is called when the znode's session has ended, when the connection was closed
	// or, if the znode is held, when the session cannot be relied on any more. It may be
	// called more than once, and from any goroutine.
	Lose(cause error)
}

type tracked struct {
	Ephemeral
	session int64         // in which the znode lives
	held    bool          // it is lost, too, if the session is suspended
	rests   bool          // it needs no proof of the session yet; see Rest
	margin  time.Duration // how much earlier than necessary it is lost then
}

// WarnTo has warnings go to log, unless they go to one already. It does not ask log,
// which is code of the user's, whether it wants them: the mutex is held.
func (l *Ledger) WarnTo(log *slog.Logger) {
	if l.log == nil && log != nil && log.Handler() != slog.DiscardHandler {
		l.log = log
	}
}

// An Alarm is a call that is to be made at a time on the loss clock's Timeline: by the
// monotonic clock, or by the wall clock if that has moved farther, as on a machine that
// was suspended.
type Alarm struct {
	at time.Time
	f  func()
}

// Resume begins a time in which there are users.
func (l *Ledger) Resume() {
	l.used = true
	l.update()
}

// Idle ends it.
func (l *Ledger) Idle() {
	l.used = false
	l.update()
}

// Rests reports whether nobody needs contacts although there are users: all ephemerals
// are far from their turn, and none is being created.
func (l *Ledger) Rests() bool {
	return l.resting > 0 && l.resting == len(l.ephemerals) && l.creating == 0
}

// update tells the clock whether contacts are wanted.
func (l *Ledger) update() {
	wanted := l.used && !l.Rests()
	if wanted == l.wanted {
		return
	}
	l.lookLate() // the clock is about to rely on the pings so far
	l.wanted = wanted
	if wanted {
		l.lossClock.Wanted(l.Now())
	} else {
		l.lossClock.Unwanted(l.Now())
	}
}

// LookBy says when somebody is to look again. One that looks much later shows that the
// process stood still: so did the client's pings, on which one that rests relies.
func (l *Ledger) LookBy(at time.Time) {
	l.lookLate()
	l.lookBy = at
}

// lookLate tells the clock if the process stood still.
func (l *Ledger) lookLate() {
	now := l.Now()
	if l.used && !l.wanted && now.Sub(l.lookBy) > l.Timeout()/stoodStillShare {
		l.lossClock.Interrupt(now)
	}
}

// stoodStillShare is the part of T by which a look is late if the process stood still.
const stoodStillShare = 20

// BeginCreate says that an ephemeral is about to be created, until EndCreate.
func (l *Ledger) BeginCreate() {
	l.creating++
	l.update()
}

// EndCreate is documented at BeginCreate.
func (l *Ledger) EndCreate() {
	l.creating--
	l.update()
}

// Track records that the znode at path is e's, in the given ZooKeeper session, until
// Untrack.
func (l *Ledger) Track(path string, session int64, e Ephemeral) {
	l.ephemerals[path] = &tracked{Ephemeral: e, session: session}
	l.update()
}

// Untrack is documented at Track. It does nothing if the path is another's by now, who
// came while e's znode was still being deleted.
func (l *Ledger) Untrack(path string, e Ephemeral) {
	if t := l.ephemerals[path]; t == nil || t.Ephemeral != e {
		return
	}
	l.setRests(path, false)
	delete(l.ephemerals, path)
	l.update()
}

// Rest says that the ephemeral at path is far from its turn: it needs no proof of its
// session until Approach, or Hold. If all need none, no contact is asked for.
func (l *Ledger) Rest(path string) {
	l.setRests(path, true)
	l.update()
}

// Approach undoes Rest.
func (l *Ledger) Approach(path string) {
	l.setRests(path, false)
	l.update()
}

func (l *Ledger) setRests(path string, rests bool) {
	t := l.ephemerals[path]
	if t == nil || t.held && rests || t.rests == rests {
		return
	}
	if t.rests = rests; rests {
		l.resting++
	} else {
		l.resting--
	}
}

// Ephemeral returns the znode at path; nil if it is not one of this process.
func (l *Ledger) Ephemeral(path string) Ephemeral {
	if t := l.ephemerals[path]; t != nil {
		return t.Ephemeral
	}
	return nil
}

// EphemeralsAt returns those znodes of this process that are at path or below it.
func (l *Ledger) EphemeralsAt(path string) (found []Ephemeral) {
	below := strings.TrimSuffix(path, "/") + "/"
	for p, t := range l.ephemerals {
		if p == path || strings.HasPrefix(p, below) {
			found = append(found, t.Ephemeral)
		}
	}
	return found
}

// Hold marks the ephemeral at path as held if its session can be relied on now. A watch
// event that another has gone may be stale, so the clock is checked. Judging and marking
// are one step: a tick that follows finds it held, and notifies it of its loss. From then
// on it is notified that the session is suspended, margin earlier than necessary; of
// several margins for one ephemeral the longest counts. One that is not held yet has to
// wait for a contact (ErrOutOfTouch) if its evidence would run out before the next can
// come. With a margin, until is when to look at it again. To hold what is held may extend
// its margin.
func (l *Ledger) Hold(path string, margin time.Duration) (until time.Time, err error) {
	l.Approach(path)
	t, err := l.find(path)
	if err != nil {
		return until, err
	}
	margin = max(margin, t.margin)
	// One that is held already keeps its hold, whatever the timeout is by now.
	if err := l.CheckMargin(margin); !t.held && err != nil {
		return until, err
	}
	if cause := l.lossCause(t.session, margin); cause != nil {
		return until, l.explain(cause, t.session, margin)
	}
	// A new hold that would be lost before the next proof is due, without any fault, is
	// not begun: after an idle time, or if answers are slow.
	if !t.held && !l.outlasts(t.session, margin) {
		return until, l.explain(outcome.ErrOutOfTouch, t.session, margin)
	}
	t.held, t.margin = true, margin
	if end, ok := l.goodUntil(t.session); ok && margin > 0 {
		until = end.Add(-margin)
	}
	return until, nil
}

// Judge returns why the ephemeral at path, which is held, cannot be relied on at this
// moment; nil if it can.
func (l *Ledger) Judge(path string) error {
	t, err := l.find(path)
	if err != nil {
		return err
	}
	if cause := l.lossCause(t.session, t.margin); cause != nil {
		return l.explain(cause, t.session, t.margin)
	}
	return nil
}

// find returns the ephemeral at path, or why none can be relied on there.
func (l *Ledger) find(path string) (*tracked, error) {
	t := l.ephemerals[path]
	if t == nil { // it has ended, and was untracked once it was removed
		return nil, outcome.ErrSessionEnded
	}
	return t, l.workable()
}

// workable returns an error if T is so short for the tick that no proof would come in
// time. The session may be good just now, by a handshake.
func (l *Ledger) workable() error {
	terms := l.terms()
	if terms.Workable() {
		return nil
	}
	return fmt.Errorf("%w: a session timeout of %v, with a server tick of %v; at least "+
		"%v is needed, and servers grant two ticks by default",
		outcome.ErrTooShort, terms.Timeout, terms.Tick, terms.LeastTimeout())
}

// Until is when the ephemeral at path, which is held, is notified that its session is
// suspended, if nothing more is heard: as time.Now returns it, not on the Timeline. It is
// now if the ephemeral is untracked, or nothing is known of its session.
func (l *Ledger) Until(path string) time.Time {
	if t := l.ephemerals[path]; t != nil {
		if end, ok := l.goodUntil(t.session); ok {
			return l.programTime(end.Add(-t.margin))
		}
	}
	return time.Now()
}

// lossCause returns why a hold in that session, with that margin, cannot be relied on
// now; nil if it can. explain adds the details, for those who are notified: each tick of
// the heartbeat asks for each ephemeral, and a waiter without proof is not notified.
func (l *Ledger) lossCause(session int64, margin time.Duration) error {
	now := l.Now()
	until, ok := l.goodUntil(session)
	switch {
	case l.closed:
		return outcome.ClosedError{}
	case l.sessionID() != session:
		return outcome.ErrSessionEnded
	case !ok || !now.Before(until.Add(-margin)): // last: a later contact can disprove it
		return outcome.ErrOutOfTouch
	}
	return nil
}

// A Notice is why an Ephemeral is lost. It is given with no mutex held: an Ephemeral has
// locks of its own.
type Notice struct {
	Of    Ephemeral
	Cause error
}

// EndedNotices returns a notice for each ephemeral whose session has ended, or whose
// connection was closed. They come before SuspendedNotices: no contact can save them.
func (l *Ledger) EndedNotices() []Notice {
	return l.notices(func(_ *tracked, cause error) bool {
		return !errors.Is(cause, outcome.ErrOutOfTouch)
	})
}

// SuspendedNotices returns a notice for each held ephemeral that cannot be relied on any
// more.
func (l *Ledger) SuspendedNotices() []Notice {
	return l.notices(func(t *tracked, cause error) bool {
		return t.held && errors.Is(cause, outcome.ErrOutOfTouch)
	})
}

// notices returns the notices of those that are lost for a cause which counts.
func (l *Ledger) notices(counts func(*tracked, error) bool) (all []Notice) {
	for _, t := range l.ephemerals {
		if cause := l.lossCause(t.session, t.margin); cause != nil && counts(t, cause) {
			cause = l.explain(cause, t.session, t.margin)
			all = append(all, Notice{t.Ephemeral, cause})
		}
	}
	return all
}

// NextSync is when the next heartbeat is due, if the last one was sent at lastSync.
func (l *Ledger) NextSync(session int64, lastSync time.Time) time.Time {
	return l.lossClock.NextSync(l.terms(), session, l.handshake(session), lastSync,
		len(l.ephemerals) > 0)
}

// Next is when to look again after now: an Ephemeral is to be notified that its session
// is suspended, if nothing more is heard, or an alarm rings; false if there is nothing. A
// notice must be given at its very time, since little is left of the session then.
func (l *Ledger) Next(session int64, now time.Time) (at time.Time, ok bool) {
	by := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if end, known := l.goodUntil(session); known {
		by(end) // also if none is held: Hold without a margin asks for no look
		for _, t := range l.ephemerals {
			by(end.Add(-t.margin))
		}
	}
	for a := range l.alarms {
		by(a.at)
	}
	return at, !at.IsZero()
}

// Set adds a call of f, when d has passed.
func (l *Ledger) Set(d time.Duration, f func()) *Alarm {
	a := &Alarm{l.Now().Add(d), f}
	l.alarms[a] = struct{}{}
	return a
}

// At is when the call is to be made, on the Timeline.
func (a *Alarm) At() time.Time { return a.at }

// Stop takes an alarm back. A call that is under way is not waited for.
func (l *Ledger) Stop(a *Alarm) { delete(l.alarms, a) }

// Due removes and returns the calls that are to be made by now. The warning that answers
// are slow comes last. They are made with no mutex held.
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

const (
	warnEvery = time.Minute
	warnShare = 2 // of the time that is a loss
)

// warning returns a call that warns that answers take long for those that are held; nil
// if they do not, or it has warned recently.
func (l *Ledger) warning(now time.Time) func() {
	log, terms := l.log, l.terms()
	answer, longest := l.lossClock.Answer(), terms.LongestAnswer()
	if log == nil || answer*warnShare < longest || now.Sub(l.warned) < warnEvery {
		return nil
	}
	for _, t := range l.ephemerals {
		if !t.held {
			continue
		}
		l.warned = now
		return func() {
			log.Warn("zookeeper lock: answers are slow, holds may be lost",
				"answer", rounded(answer), "timeout", terms.Timeout,
				"lost_from", rounded(longest))
		}
	}
	return nil
}
