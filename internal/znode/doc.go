// Package znode is the life of one ephemeral znode of this process, from before its
// create until after its delete, and the directory that it lives in. The package knows
// paths and ids. Its [Hooks] know what the number in a name means, and who stands ahead.
//
// # The life of a Node
//
//	           Join                  Hold               Withdraw
//	(creation) -----------> queued ------------> held ---------------+
//	                          |  ^                | |                |
//	                          |  +----------------+ | Gone, Lose     |
//	                          |       unhold        | Lost is done   |
//	                          |                     v                v
//	                          +-----------------> ended <------------+
//	                        Withdraw, Gone, Lose    |
//	                                                v
//	                                the znode is deleted, in the background
//
// Queued: the znode exists, and somebody waits for its turn. Held: somebody relies on it,
// or is about to. Ended: by end, once, whatever the cause. The steps of an end, in order:
//
//  1. The holder is notified (Lost), its Tenants before the Node, unless it left.
//  2. HasEnded turns true, and the delete begins. Up to here Node.mu is held.
//  3. Hooks.Ended is called, with no mutex of a Node held.
//  4. Ended is done: those of this process that wait for the Node are woken. They do not
//     wait for the answer to the delete.
//  5. Once the znode is deleted, or the session is over, Hooks.Removed is called. The one
//     who asked for the delete is told at the first answer, a refusal too.
//
// A Node that left is still lost if the session ends before the delete is confirmed.
//
// # A given name
//
// The path of a znode in a queue is nobody else's, since an id is in it. A znode with a
// given name (Claim) shares its path with those before and after it, so whose it is must
// be known before anything is done with it: by its czxid, or by its session and data
// while that is not known. One at a time is created, once the removal of the former has
// ended. What is left of a former session is the Claim's to delete.
//
// # When the next may go
//
// Waiters in other processes wait until the znode is gone. Waiters in this process need
// not wait for that if nothing can be done under the znode any more. Something still can
// while a transaction that checks the znode is open (Guard), while the znode lingers
// (Linger), and if a hold was lost and its owner may not know yet.
//
// # Goroutines
//
//   - Each create runs on one of its own, which calls Hooks.Sending and Hooks.Created. A
//     create that nobody waits for any more is followed to its end, and what it created
//     is withdrawn.
//   - The watch on a Node's own znode (keepSelfWatch) ends with the Node. It calls
//     Hooks.Data.
//   - The delete, begun by end, ends with the session at the latest, and calls
//     Hooks.Removed; if it was refused, another goroutine goes on with it (insist). So do
//     those of the delete of an orphan, of the search for one, and of Dir.Unmake. A
//     delete of what outlives the session ends with the connection.
//   - Hooks.Ended is called by whoever ends the Node.
//
// # Locks
//
// Node.mu guards Node.life and the second half of selfWatch. It comes after the mutexes
// of the packages above. With it held, only package zkconn's mutexes are taken, and only
// Tenant.Lost is called. Nobody ends a Node while holding a mutex that its Hooks take.
//
// # Where events may come late
//
// A wrapper may pass events on by a goroutine, so that an event reaches its channel after
// the answer to a later request (zkconn.Conn.InOrder). Then a watch that has not
// fired proves nothing: Intact is false.
//
// # Files
//
// Each uses only those below it.
//
//   - claim.go: Claim: znodes with a given name, and the data of one.
//   - create.go: Join: a create, until its outcome is known.
//   - dir.go: the directory, created if it is missing.
//   - tenant.go: those who share a held Node.
//   - hold.go: Hold: from queued to held, and how long at most.
//   - selfwatch.go: the watch on the own znode, and what it proves.
//   - end.go: the one end of a Node, and the delete.
//   - outliving.go: the delete of a znode that its session does not take along.
//   - delete.go: the delete of a znode of ours, until its session ends.
//   - node.go: Node, its state, and what it calls: Hooks, Tenant.
//   - spec.go: what the znodes of one side have in common.
//   - id.go: the id in a name.
//
// # Words
//
//   - token: the fencing token: the znode's czxid, if the connection reports the zxid of
//     a create; otherwise what a list showed (LearnToken); otherwise the czxid, by a
//     read.
//   - orphan: a znode that our create of unknown outcome left next to the held one.
//   - confirmed: the watch on our own znode is set, and no event has come.
//   - tenant: one of several that rely on a Node, each with a margin of its own.
package znode
