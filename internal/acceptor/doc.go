// Package acceptor takes a trace of what happened around one mutex, and demands that it
// is one of the model's, model/queue.pml: that each grant is one that the model can make
// at that place, by what the process knew, and by what was so at the servers.
//
// A trace shows each transaction in the servers' order, each request, answer and event as
// the client got it, and what the owners saw. It does not show when a process has looked
// at an answer that it got, on which one a decision rests, or when a waiter gives up. So
// all states of the model count that agree with the trace so far, and a line is rejected
// if none of them can make it. Of the states of a connection only the one that has taken
// the fewest answers is kept: each other is reached from it by taking more. That a waiter
// gives up is assumed when a grant needs it, and refuted when that one is granted.
//
// One thing the model does not have: a plain *zk.Conn that comes back to the same server
// over others, between two looks of the library, does not show that it was away.
//
// # Of the model
//
//   - create, remove, the end of a session: as committed (tree.go).
//   - grant by list, by notification, by number, each with hand-over: view.go.
//   - hold: alone, unless a loss was told; with a greater token (accept.go).
//   - told, left, given up; a loss is told before the session ends, as session.pml has
//     it, and a znode stays for the margin of its hold; at the end nothing is left.
//
// Whether the model's guards and these agree is checked as well: promela.go writes a
// trace as a process that goes along with the model, for Spin.
//
// # Left out
//
// Read/write locks, kept znodes, small reads (see model/queue.pml); that who waits gets
// the lock, of which a trace shows nothing; margins of holds that are forced to end.
package acceptor
