// Package lockcache keeps a znode in a queue for owners of this process who share it, as
// long as nobody else wants it.
//
// # An entry and its generations
//
// An entry belongs to a connection, a directory and a kind. It goes through generations:
// each is one znode, from its create to its delete. In each of them the owners follow one
// another, or are in it together if their kind does not exclude itself. An owner's part
// in a generation is a [Share].
//
//	          newGeneration        granted              leave, or lost
//	(waiting) -------------> next -----------> current ---------------> over
//	                          |                 |  ^
//	                          | nobody waits    |  | admit, StartLeaving: users come and
//	                          v any more        +--+ go; with none of them it is idle
//	                        given up
//
// An entry has at most one current generation, and one that is next: for the first that
// wait, or behind the current one, for those who are more than that may still admit.
// Nothing is known of who stands behind while a generation is next. Once it is current it
// watches the directory, until somebody is known who has to wait for it (contended).
//
// A contended generation admits as many more as Policy.MaxHandovers says, of readers
// none, and is given up as soon as nobody here waits. It is closed to all others if its
// znode's data was changed, if a read lock was taken under it, or if a transaction was
// open when its owner left: whatever could be done under the znode by one that has left
// ends with the znode. It is closed, too, if its owner leaves while ZooKeeper does not
// answer: it may be lost already, which the delete tells.
//
// Whether an owner is admitted, and whether a generation is over, reconcile decides and
// nobody else. Each owner that is admitted asks the clock first, since an entry can have
// been idle for any time, and this process stopped (attach). The Node notifies those that
// are in it of a loss. An owner with a loss margin is notified by the connection
// (Share.SessionEnded), so that its margin is its own; one whose margin is in the way is
// admitted later (letIn).
//
// If events may come late (zkconn.Conn.InOrder), others are noticed later, so owners of
// this process may overtake a newcomer for that much longer.
//
// # Goroutines
//
// A generation has one. It goes through Queue.Enter for the owners, whoever of them
// leaves, and then watches the directory (newGeneration, keepWatch). It ends with its
// Node. The Listener of a request is told of the queue by the goroutine in [Enter], and
// of data by the one that watches the znode; Share.SessionEnded may be called by any.
//
// # Locks
//
// entry.mu guards what entry, generation, waiter and Share say it does. It comes before
// all mutexes of the packages below: a Node is ended, and its hooks called, with it held.
// Nobody who has it calls ZooKeeper, waits for anything else, or calls what a request
// brings. A Node calls tenant.Lost with its own mutex held, so that takes none of these.
//
// # Files
//
// Each uses only those below it.
//
//   - enter.go: an owner comes, waits, and leaves.
//   - share.go: what an owner can do with its Share.
//   - reconcile.go: what is to become of an entry, and what makes that change.
//   - position.go: where those who wait stand, as they are told.
//   - generation.go: whether a generation admits another, and its end.
//   - tenant.go: how a Share relies on the Node.
//   - entry.go: the state of all: entry, generation, waiter, Share.
//
// # Words
//
//   - current, next: see above.
//   - contended: somebody behind is known to wait for the znode.
//   - closed: no other owner is admitted.
//   - hand-over: to admit the next owner of this process to a contended generation.
//   - idle: without users.
package lockcache
