// Package reliance keeps the znodes of this process that live in the sessions of one
// connection: until when each can be relied on, and what it is to be told when it cannot
// any more. A [Ledger] is a value: its owner tells it of requests, answers and
// handshakes, and asks it. It makes no request, calls nobody but the functions of its
// Config, and knows no queue.
//
// How long a session lasts is judged by package lossclock, by what is put into it here.
//
// # Files
//
// Each uses only those below it.
//
//   - losses.go: what is to be told to whom; when to look next.
//   - alarms.go: calls that are to be made at a time.
//   - ephemerals.go: which znodes there are, and which are held.
//   - ledger.go: Ledger, and what it keeps.
//   - loss.go: why a hold is lost, in words.
//   - clock.go: what the loss clock is given.
//
// # An ephemeral
//
//	Track ──► waits ──► Hold ──► held ──► Untrack
//	            │                 │
//	            │                 ├ told when the session is suspended (Suspended)
//	            └─────────────────┴ told when the session has ended (Ended, Closed)
//
// It may be told again; what it is told does not untrack it.
//
// # Goroutines and locks
//
// The package has neither. Whoever owns a Ledger guards it by one mutex: judging and
// marking are one step. The functions of a Config are called with that held. Notices are
// given, and the calls of Due are made, with none.
//
// # Words
//
//   - ephemeral: a znode of this process, through this connection, tracked until its
//     delete is answered. It waits, or is held: from Hold on, also while it is deleted.
//     It is told when its session has ended, and a held one also when the session is
//     suspended: the time that the leader surely gives it has run out.
//   - margin: by how much earlier than it must be a held ephemeral is told that the
//     session is suspended (Hold). Each has its own, and so has each of several who rely
//     on one (Rely).
//   - contact: a request of which the leader surely has heard (Heard).
//   - alarm: what is to be done once a time has passed, by the loss clock's line (Set).
package reliance
