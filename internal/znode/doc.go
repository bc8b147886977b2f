// Package znode is the life of one ephemeral znode of this process, from before its
// create until after its delete, and the directory that it lives in. The package knows
// paths and ids. Its [Hooks] know what the number in a name means, and who stands ahead.
//
// # The life of a Node
//
//	          Create                 Hold               Withdraw
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
//  1. Hooks.End is called, with no mutex of a Node held. It locks what else has to know.
//  2. The holder is notified (Lost), its Tenants before the Node, unless it left.
//     HasEnded turns true, and the delete begins. For this step Node.mu is held, too.
//  3. Hooks.End notes the end, unlocks and returns. So nobody can see a part of 2 and 3:
//     one that hears of its loss and asks the queue finds that known there.
//  4. Ended is done: those of this process that wait for the Node are woken. They do not
//     wait for the answer to the delete.
//  5. Once the znode is deleted, or the session is over, Hooks.Removed is called. The
//     caller that asked for the delete gets the first answer, a rejection too.
//
// A Node that left is still lost if the session ends before the delete is confirmed.
//
// # Who notices an end
//
// Lose is called by the tick of package zkconn (an ended session, no contact for too
// long), and by any call that finds the connection closed. It is called by those that
// look before the tick does: Hold and Check, which ask the clock before somebody begins,
// or goes on, to rely on the Node; a waiter that sees another session; a transaction that
// finds the znode gone. A Share calls it when its time is over. Gone is called by the
// watch on the znode, also through a sleep on another watch (Deleted, DrainEvent); by a
// list that does not show it; and by Set. A delete that finds the znode gone notifies a
// holder that waits for it.
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
//     Hooks.Removed; after a rejection another goroutine goes on with it (insist). So do
//     those of the delete of an orphan, of the search for one, and of Dir.Unmake. A
//     delete of what outlives the session ends with the connection.
//   - Hooks.End is called by the goroutine that ends the Node.
//
// # Locks
//
// Node.mu guards Node.life and the second half of selfWatch. It comes after the mutexes
// of the packages above. With it held, only package zkconn's mutexes are taken, and only
// Tenant.Lost is called. Nobody ends a Node while holding a mutex that its Hooks take.
// Hooks.End holds its own around a part of the end: so Lost waits for that mutex, which
// nobody may hold across anything that can block.
//
// # Where events may come late
//
// A wrapper may pass events on by a goroutine, so that an event reaches its channel after
// the answer to a later request (zkconn.Conn.InOrder). Then a watch that has not
// fired proves nothing, and package order decides by lists (Rules.Ordered).
//
// # Words
//
//   - token: the fencing token: the znode's czxid, if the connection reports the zxid of
//     a create; otherwise what a list showed (LearnToken); otherwise the czxid, by a
//     read.
//   - orphan: a znode that our create of unknown outcome left next to the held one.
//   - confirmed: the watch on our own znode is set, and no event has come.
//   - tenant: one of several that rely on a Node.
package znode
