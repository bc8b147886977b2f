// Package lockcache keeps a znode in a queue for owners of this process who share it, as
// long as nobody else wants it.
//
// # An entry and its generations
//
// An entry belongs to a connection, a directory, a kind and the terms of a hold. It goes
// through generations: each is one znode, from its create to its delete. (What users, and
// other packages, call a cached entry is such a znode.) Within a generation the owners
// follow one another, or hold it together if their kind does not exclude itself. An
// owner's part in a generation is a [Share].
//
//	          startLocked          granted              leave, or lost
//	(waiting) -------------> next -----------> current ---------------> over
//	                          |                 |  ^
//	                          | nobody waits    |  | admit, StartLeaving: users come and
//	                          v any more        +--+ go; with none of them it is idle
//	                       cancelled
//
// An entry has at most one current generation and one next generation. The next one is
// for the first owners that wait or, behind the current one, for those that the current
// one may no longer admit. While a generation is next, it is not known who stands behind
// it. Once it is current it watches the directory, until somebody is known to wait for it
// (contended).
//
// Each event of that watch begins a doubt, and so does the grant: others may have come.
// The list that follows ends it. What is admitted in a doubt counts as a hand-over, and
// if none is left the next owner waits for that list.
//
// A contended generation admits at most Policy.MaxHandovers more owners, and no more
// readers. It is released as soon as nobody here waits. It is closed to all others if its
// znode's data was changed, if a read lock was taken under it, or if a transaction was
// open when its owner left: what an owner that has left could still do under the znode
// ends with the znode. It is closed, too, if its owner leaves while ZooKeeper does not
// answer: it may be lost already, as the delete will show.
//
// If two exclusive generations in a row served one owner each, and others waited for
// both, the next are not cached: they are assumed to be contended, which saves the watch
// and the list. Caching is tried again once no other process was seen for a while
// (demand).
//
// Only reconcileLocked decides whether an owner is admitted, and whether a generation is
// over. Each owner that is admitted checks the clock first, since the entry may have been
// idle, or this process stood still, for any time (admitLocked). The Node notifies its
// owners of a loss. They all have the same loss margin, so nobody is notified before
// another.
//
// If events may come late (zkconn.Conn.InOrder), others are noticed later, so owners of
// this process may overtake a newcomer for that much longer.
//
// # Goroutines
//
// A generation has one. It calls Queue.Enter on behalf of the owners, even if some of
// them leave, and then watches the directory (startLocked, keepWatch). It ends with its
// Node. The goroutine in [Enter] reports the queue to the Listener of a request, and the
// goroutine that watches the znode reports its data. A Share expires on the goroutine of
// the connection's tick.
//
// # Locks
//
// entry.mu guards what entry, generation, waiter and Share say it does; a method whose
// name ends in Locked is called with it held. It comes before all mutexes of the packages
// below: a Node is ended, and its hooks called, with it held. Nobody who has it calls
// ZooKeeper, waits for anything else, or calls what a request brings. A Node calls
// tenant.Lost with its own mutex held, so tenant.Lost takes none of these mutexes.
//
// # Words
//
//   - current, next: see above.
//   - doubt: somebody has come or gone since the last list.
//   - contended: somebody behind is known to wait for the znode.
//   - closed: no other owner is admitted.
//   - hand-over: to admit an owner of this process while others wait, or may (contended,
//     or in a doubt).
//   - idle: without users.
package lockcache
