// Package acceptor reads a trace of what happened around one mutex, and demands that the
// model, test/model/queue.pml, could have produced it: that the model can make each grant
// at that point, given what the process knew and what was true at the servers.
//
// A trace shows each transaction in the servers' order, each request, answer and event as
// the client got it, and what the owners saw. It does not show when a process has looked
// at an answer that it got, on which answer a decision rests, or when a waiter gives up.
// So the acceptor keeps all states of the model that agree with the trace so far, and
// rejects a line that none of them can produce. Of a connection's states it keeps only
// the one that has taken the fewest answers: the others are reached from it by taking
// more. It assumes that a waiter gives up when a grant requires that; a later grant to
// that waiter refutes the assumption.
//
// One thing the model does not have: if a plain *zk.Conn leaves a server and returns to
// it between two looks of the library, even by way of others, it does not show that it
// was away.
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
// Read/write locks, kept znodes, small reads (see test/model/queue.pml); that who waits
// gets the lock, of which a trace shows nothing; margins of holds that are forced to end.
package acceptor
