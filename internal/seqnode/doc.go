// Package seqnode is the queue that every recipe stands in: a directory of ephemeral
// sequential znodes. A recipe is a name for its znodes and a [Rule]; joining, waiting and
// leaving are the same for all. Leases, which leave in any order, have no Rule but a
// [Limit], and another queue as their gate (EnterN). The package knows no recipe and no
// owner.
//
// # The life of a Node
//
//	             create                hold                leave
//	(creation) ----------> queued ------------> held ---------------+
//	                         |  ^                | |                |
//	                         |  +----------------+ | gone, Lose     |
//	                         |       unhold        | Lost is done   |
//	                         |                     v                v
//	                         +-----------------> ended <------------+
//	                          leave, gone, Lose    |
//	                                               v
//	                               the znode is deleted, in the background
//
// Queued: the znode stands in the directory, and a waiter waits for its turn. Held: Enter
// has returned it, or is about to; who got it relies on it. Ended: by end, once, whatever
// the cause. The holder is told first (Lost), unless it left by itself. Then the delete
// begins, and those of this process that wait for the Node are told (ended), without
// waiting for its answer; it lasts until that comes or the session is over. One that left
// is still told as lost where the session ends before the delete is confirmed.
//
// A waiter that finds its Node ended begins anew, with a new znode at the tail
// (errRejoin).
//
// # When the next may go
//
// Those behind in other processes wait until the znode is gone. Those of this process
// need not, in two cases, since they know why it goes: it was held with nobody ahead and
// its owner left (passFront), or a list shows it although it has ended (yields). In
// neither case may anything be done under it any more. Something may be while a
// transaction that checks the znode is open (Guard), and where a hold was lost of which
// its owner may not have heard yet. Then they wait for the znode like all others.
//
// # What a waiter asks
//
// Nobody joins ahead of another. So what has ever been seen ahead is all that can be, and
// it only shrinks. That is known to all Nodes of a connection in one queue (crowd), and a
// waiter asks for as little as it needs, in this order (place, advance):
//
//   - Behind a Node of this process that has to go first it asks for nothing.
//   - Else it may be known how far the queue has come (front). Then it is the turn of the
//     next number (isNext). So a crowd can join, and pass a lock on, without a list; and
//     so can one who comes back to a lock that nobody else has used meanwhile.
//   - Else the last list of this process tells who is ahead, if it shows the waiter.
//   - Else it lists, once for all who want that at the same time.
//   - Once the one that it waits for has gone, those who are left ahead are asked for by
//     small reads if they are few; else it lists.
//
// What is known of others is worth nothing unless one's own znode is there: a list shows
// it; else a watch on it is set, and events and answers come in order (intact). Numbers
// are worth nothing unless they are of one directory: a watch on that tells since when it
// has been the same (session.Session.Born), and tokens, who has come since. Whose znode
// somebody deletes within 20 ms of its create, or while the connection is away, can still
// have the lock handed on to it within its process: the watch on it is set then, or set
// again, and tells the holder at once.
//
// # Where events may come late
//
// A wrapper may pass events on by a goroutine, so that an event reaches its channel after
// the answer to a later request (session.Session.InOrder). Then a watch that has not
// fired proves nothing, and each conclusion from one is replaced:
//
//   - the turn of the next number: Born never knows, so a list decides.
//   - the grant by the event that the blocker has gone: intact is false, so a list has to
//     show the waiter's znode first.
//   - the hand-over within this process: likewise.
//   - a cached entry: others are noticed later, so owners of this process may overtake a
//     newcomer for that much longer.
//   - a loss by a deleted znode: the holder is notified that much later. The loss clock
//     does not treat events as proof, so it is not affected.
//
// Leases are counted in a list behind the watch, and need no order of events.
//
// # A place that is kept
//
// One stay is one znode, from its create to its delete. What Enter returns is the stay of
// one owner. The owners who come by EnterKept have a place in common, which goes through
// one stay after the other: in each of them they follow one another, or are in it
// together where their kind does not exclude itself. An owner's part in it is a Share.
//
//	          newStay             granted               leave, or lost
//	(waiting) -------> coming ---------------> held ----------------------> over
//	                      |                     |  ^
//	                      | nobody waits        |  | admit, StartLeaving: users come and
//	                      v any more            +--+ go; with none of them it is idle
//	                    given up
//
// A place has one held stay at most that lets owners in, and one that is coming: for the
// first who wait, or behind the held one, for those who are more than that may still let
// in. Nothing is known of who stands behind while a stay is coming. Once it is held it
// watches the directory, until somebody is known who has to wait for it (contended). A
// contended stay lets in so many more as Keeping.Passes says, of readers none, and is
// given up as soon as nobody here waits. One is closed to all others when its znode's
// data was changed, a read lock was taken beside it, or a transaction was open when its
// owner left: whatever could be done under the znode by one who has left ends with the
// znode. So is one whose owner leaves while ZooKeeper does not answer: it may be lost
// already, which the delete tells.
//
// Whether an owner is let in, and whether a stay is over, is decided by review and by
// nobody else. Everybody who is let in asks the clock first, since a place can have been
// idle for any time, and this process stopped (attach). Lost is told by the Node to those
// who are in it then. An owner with a loss margin is told by the session
// (Share.SessionEnded), so that its margin is its own; one whose margin is in the way is
// let in later (letIn).
//
// # One loop
//
// Whoever waits for something, a turn in the queue (waiter), room for leases (batch) or a
// maximum (limitWaiter), or for having seen enough of a queue from outside (follower), is
// an aim in the hands of await: look, sleep until something may have changed, look again,
// take.
//
// # Goroutines
//
//   - The caller's, in Enter, EnterN, EnterBeside, Limit.Await or Follow, owns the
//     waiter, the batch, the limitWaiter or the follower. It never calls ZooKeeper
//     itself: the client's calls cannot be cancelled.
//   - Each call to ZooKeeper, or a few in a row, is made by a session.Pending. The caller
//     waits for it until its ctx is done. A create that nobody waits for any more is
//     followed up, and what it made withdrawn.
//   - The list behind a create is sent by one of its own, so that both are under way at
//     once. In a batch each create has one, and they send one behind the other.
//   - The watch on a Node's own znode (keepSelfWatch) ends with the Node. It calls
//     OnData.
//   - The delete of a Node's znode, begun by end, ends with the session at the latest.
//   - A stay that owners share has one, which goes through Enter for them, whoever of
//     them leaves, and then watches the directory (newStay, keepWatch). It ends with its
//     Node.
//
// OnQueued and a Look are called by the caller's goroutine, OnData by the watch's; Lose
// and SessionEnded may be by any.
//
// # Locks
//
// A place's mutex comes first, then a crowd's, then a Node's; nobody has two of a kind.
// Nobody who has one calls ZooKeeper, waits for anything else, or calls what a Request
// brings; end starts the delete under them, which takes the mutexes of package session.
// So these must not call a Node while they are locked, and do not.
//
// # Words
//
//   - position: what is known of a waiter: how many are ahead, and whom it waits for.
//   - blocker: the one participant that the rule names, which has to go first.
//   - local: of a blocker, that it is of this process and session. No watch is set on it:
//     its Node tells when it ends.
//   - token: the fencing token: the znode's czxid, where the connection tells when it has
//     created what; else the directory's pzxid where the list shows nobody behind us,
//     which costs nothing either; else the czxid again, by a read.
//   - crowd: the Nodes of one connection in one queue, and what they know together. led:
//     of a create, that one of them is ahead. alone: of a position, that it tells of them
//     only. met: of a waiter, that it has waited for one of another process.
//   - front: the number up to which everybody has gone, or hands over.
//   - view: a list, as the queue that it shows. way: those in it who may still be ahead
//     of a waiter. passed: one of them who was in the way, and has gone.
//   - proven: of a list, that it was asked for after the create was answered: a znode
//     that it does not show is gone. The first list is not; it counts only if it shows
//     ours.
//   - intact: nothing has happened to our own znode, as far as the watch on it has told
//     and the connection was not away. False where events may come late.
//   - stray: a znode of ours that a create of unknown outcome made beside the one we
//     hold.
//   - writer, beside: a read lock of the owner of a write lock takes a place beside that
//     writer, by its number, and need not wait.
//   - place, stay, Share: see above. A stay is coming, then held; contended, closed.
//   - pass: to let the next owner of this process into a contended stay.
//   - batch, gate: leases that are taken together, and the place in another queue that
//     their process holds meanwhile, so that only one batch at a time waits for room.
package seqnode
