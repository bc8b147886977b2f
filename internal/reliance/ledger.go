package reliance

import (
	"context"
	"iter"
	"log/slog"
	"time"
)

// A Ledger knows the znodes of this process that live in the sessions of one connection,
// and until when they can be relied on. It is guarded by its owner's mutex.
type Ledger struct {
	clock
	slowness               // whom to tell that answers are slow
	sessionID func() int64 // see Config.SessionID
	closed    bool         // see Close

	ephemerals ephemerals // the znodes of this process
	reliers    reliers    // those who rely on them with a margin of their own
	alarms     alarms     // what is to be done at a time
}

// A Config is what a Ledger is given. Its functions are called with the mutex held.
type Config struct {
	// SessionID is the present session's.
	SessionID func() int64
	// Timeout is the negotiated session timeout, 0 where it is unknown.
	Timeout func() time.Duration
	// Advice is what a loss says is to be done where Timeout is unknown.
	Advice string
	// LastHandshake tells when the last handshake of that session began; nil where the
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
		ephemerals: ephemerals{}, reliers: reliers{}, alarms: alarms{},
	}
}

// Close says that the connection was closed: nothing can be relied on any more.
func (l *Ledger) Close() { l.closed = true }

// An Ephemeral is a znode of this process that lives in the session.
type Ephemeral interface {
	// SessionEnded tells that the znode's session has ended or, of a held one only, that
	// it cannot be relied on any more. It may be called more than once, and from any
	// goroutine.
	SessionEnded(cause error)
}

// ephemerals are the znodes that are tracked, by path: whoever finds another's znode in a
// queue asks by its path whether it is one of this process, which needs no watch.
type ephemerals map[string]*tracked

// reliers are those who rely on an ephemeral that is held for several, with a margin of
// their own; see Rely.
type reliers map[Ephemeral]*tracked

type tracked struct {
	Ephemeral
	session int64 // that the znode lives in
	held    bool  // it guards something, so that silence is a loss
	// how much earlier than the others it is told of silence, of a held one
	margin time.Duration
}

// A slowness tells whoever reads the log that holds are near their loss although nothing
// is wrong: answers take long.
type slowness struct {
	log  *slog.Logger // nil: nobody reads it
	told time.Time
}

// Tell has warnings go to log, unless they go to another that takes them.
func (s *slowness) Tell(log *slog.Logger) {
	if s.log == nil && log != nil && log.Enabled(context.Background(), slog.LevelWarn) {
		s.log = log
	}
}

// all returns those who can be told of a loss: the znodes, and who relies on them.
func (l *Ledger) all() iter.Seq[*tracked] {
	return func(yield func(*tracked) bool) {
		for _, t := range l.ephemerals {
			if !yield(t) {
				return
			}
		}
		for _, t := range l.reliers {
			if !yield(t) {
				return
			}
		}
	}
}

// alarms are what is to be done at a time on the clock's line: by the monotonic clock, or
// by the wall clock where that has moved farther, as on a machine that was suspended.
type alarms map[*Alarm]struct{}

// An Alarm is one call that is to be made.
type Alarm struct {
	at time.Time
	f  func()
}
