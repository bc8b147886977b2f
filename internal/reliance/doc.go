// Package reliance keeps the znodes of this process that live in the sessions of one
// connection: until when each can be relied on, and which notice it gets after that. A
// [Ledger] is a value: its owner reports requests, answers and handshakes to it, and
// queries it. It makes no request, calls nobody but the functions of its Config, and
// knows no queue.
//
// Package lossclock judges how long a session lasts, from what this package passes to it.
//
// # An ephemeral
//
//	Track ──► waits ──► Hold ──► held ──► Untrack
//	            │                 │
//	            │                 ├ notified if the session is suspended
//	            └─────────────────┴ notified if the session has ended
//
// It may be notified again; that does not untrack it.
//
// # Goroutines and locks
//
// The package has neither. The owner of a Ledger guards it by one mutex: judging and
// marking are one step. The functions of a Config are called with that held. Notices are
// given, and the calls of Due are made, with no mutex held.
//
// # Words
//
//   - ephemeral: a znode of this process, through this connection, tracked until its
//     delete is answered. It waits, or is held: from Hold on, also while it is deleted.
//     It is notified when its session has ended. If it is held, it is also notified when
//     the session is suspended, that is, when the time that the leader certainly grants
//     has run out.
//   - rest: of an ephemeral that waits, that it is far from its turn, and needs no proof
//     of its session yet. If all do, and none is created, nobody asks for contacts: the
//     session is idle for the loss clock, which then relies on the client's pings. LookBy
//     finds out whether the process stood still meanwhile, which may have delayed them.
//   - margin: how much earlier than necessary a held ephemeral is notified that the
//     session is suspended (Hold). Each has its own.
//   - contact: a request that has certainly reached the leader (Heard).
//   - alarm: a call that is to be made at a time, on the loss clock's Timeline (Set).
package reliance
