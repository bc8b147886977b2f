// Package reliance keeps the znodes of this process that live in the sessions of one
// connection: until when each can be relied on, and which notice it gets after that. A
// [Ledger] is a value: its owner reports requests, answers and handshakes to it, and
// queries it. It makes no request, calls nobody but the functions of its Config, and
// knows no queue.
//
// Package lossclock judges how long a session lasts, from what this package passes to it.
//
// # Files
//
// Each uses only those below it.
//
//   - losses.go: what is to be told to whom; when to look next.
//   - alarms.go: calls that are to be made at a time.
//   - slow.go: the warning that answers are slow.
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
// It may be told again; being told does not untrack it.
//
// # Goroutines and locks
//
// The package has neither. Whoever owns a Ledger guards it by one mutex: judging and
// marking are one step. The functions of a Config are called with that held. Notices are
// given, and the calls of Due are made, with no mutex held.
//
// # Words
//
//   - ephemeral: a znode of this process, through this connection, tracked until its
//     delete is answered. It waits, or is held: from Hold on, also while it is deleted.
//     It is told when its session has ended. A held one is also told when the session is
//     suspended, that is, when the time that the leader certainly grants it has run out.
//   - margin: how much earlier than necessary a held ephemeral is told that the session
//     is suspended (Hold). Each has its own, and so has each of several who rely on one
//     (Rely).
//   - contact: a request that has certainly reached the leader (Heard).
//   - alarm: what is to be done once a time has passed, by the loss clock's line (Set).
package reliance
