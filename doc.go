// Package recipes provides distributed locks, semaphores and leader election on
// ZooKeeper. It implements the lock recipes of Apache Curator on
// github.com/go-zookeeper/zk: Go and Java processes that use the same path share the
// lock. Start with [Connect], [NewInterProcessMutex] and [Do].
//
// # Guarantees
//
// At most one owner holds an exclusive lock, for as long as the ZooKeeper session behind
// the hold lasts. Owners acquire a lock in the order in which they joined its queue. An
// election is a lock whose owner is a candidate; a term is a [Hold], with the same
// guarantees.
//
// In an outage, [Hold.Lost] closes before the ensemble can grant the lock to another
// owner, provided that this process is running. If somebody deletes the znode or ends the
// session, it closes as soon as this process learns of that; another owner may get the
// lock first. A process that is suspended for longer than the session timeout finds out
// only after it resumes. In both cases a store can reject the former holder's writes by
// [Hold.FencingToken]; writes to ZooKeeper itself can be made conditional on the hold
// with [Hold.Multi].
//
// A hold survives an outage of up to about half the session timeout, less right after the
// acquire; a waiter survives any outage. A call that is cancelled or times out leaves no
// znode behind: if ZooKeeper is unreachable, the znode is deleted in the background while
// the connection is open. docs/guarantees.md has the numbers and the assumptions.
//
// # Owners
//
// ctx carries the owner ([WithOwner]); without one, the owner is the calling goroutine
// (in Curator, the thread). The same owner re-enters a reentrant lock; another owner
// queues, even through the same Go value. Re-entry is per value: an owner that acquires
// the same path through a second value waits for itself.
//
// All locks, Client, Hold, Lease and the elections are safe for concurrent use. Locks and
// LeaderSelector need no closing, and a value may be made for each use.
package recipes
