// Package recipes is Apache Curator's lock recipes for ZooKeeper, on
// github.com/go-zookeeper/zk: Go and Java processes that use the same path queue for the
// same lock.
//
// # What a lock promises
//
// At most one owner holds it, and the owners get it in the order in which they joined the
// queue. A hold lasts as long as the ZooKeeper session behind it: in an outage,
// [Hold.Lost] closes before the ensemble can give the lock to somebody else, as far as
// this process runs at all. If somebody deletes the znode or ends the session, it closes
// as soon as this process learns of it, and others may be faster. A process that is
// stopped for longer than the session timeout finds out late, too; what the lock protects
// can refuse both by their [Hold.FencingToken]; writes to ZooKeeper itself can be made
// one transaction with the check that the lock is held, by [Hold.Multi].
//
// A call that is cancelled or runs out of time leaves no znode behind, also when
// ZooKeeper is out of reach: what cannot be undone at once is undone in the background,
// while the connection lives. An outage fails nobody who waits. A hold survives an outage
// of up to about half of the session timeout, and less right after the acquire (see the
// table in docs/guarantees.md#how-long-a-silence-may-last): its holder has to be told of
// a loss before the servers can decide on one.
//
// # Owners
//
// Curator's owner is the calling thread. Here it is the owner that ctx carries
// ([WithOwner]) and, where it carries none, the calling goroutine. The same owner
// re-enters a reentrant lock; another owner queues, although it shares the Go value.
// Re-entry is per value: through another value of the same path the owner waits for
// itself. [Do] shares its owner with the goroutines of its fn for its own lock only. Each
// call of [Acquire] is an owner of its own, and [Hold.Release] needs none in its ctx.
//
// # Elections
//
// An election is a lock with one owner, the candidate, and a term is a [Hold]: what is
// true of a lock is true of it. [LeaderSelector] leads for as long as a function runs,
// [LeaderLatch] until it is closed. Whoever wants to know the leader reads it from the
// znodes ([LeaderSelector.Leader]), or is told of each ([LeaderSelector.Leaders]).
//
// # What it costs
//
// A free lock costs a create, a list and a delete, and Acquire waits for one round trip.
// A waiter watches the znode ahead of it, where that is another process's, and its own,
// and is woken only when one of them goes. Re-entry asks nothing of ZooKeeper. A znode
// that lasts longer than 20 ms takes a goroutine and one read with a watch on itself, and
// a connection with holders or waiters one sync every tenth of the session timeout.
package recipes
