// Package leases takes leases: znodes in a directory with a maximum of participants.
// Leases are taken together, all or nothing, and left in any order. So there are no
// turns: only one batch at a time waits for room, that of the process that holds the
// gate, an entry in another queue.
//
// [Enter] creates a batch and waits for room. [Maximum.Await] waits, without any znode,
// until the maximum is high enough. Each has a Goal of package wait. The first check has
// no watches; one that finds no room is repeated with watches on the directory and on the
// maximum. A list behind a watch needs no order of events.
//
// A batch is joining, waiting, and then held or withdrawn; its Nodes are held together.
// Once it is held, or has failed, the gate is left, after the znodes.
//
// # Why there are never too many
//
// A process that is granted a lease has seen, behind its own create, that no more than
// the maximum are left of those created up to it. So of the leases in use at any time,
// the youngest has counted all others. Curator's clients create first and count then, as
// we do: one behind a lease of ours counts that. The promise therefore does not need the
// gate. A client can come past it: in Curator one whose session ends between the gate and
// the lease, and anybody whose znode at the gate is deleted.
//
// The gate keeps two from waiting for each other: Curator counts those behind its own
// lease, too. So nobody here waits for room any longer than its gate lasts, and no lease
// is created before the gate is held: it would be counted, and make a concurrent single
// attempt fail.
//
// If the maximum is 1 there is nothing to count. A lease is granted once nobody is ahead,
// as in the queue of a lock, which has all the ways to know that, and one event for a
// hand-over (seqnode.Queue.EnterThrough). With more leases an event does not tell how
// many are left. So a batch lists the directory again.
//
// # Goroutines and locks
//
// A batch and a maximumWaiter belong to the goroutine in Enter or Await. Each create runs
// on a goroutine of its own, which owns its ticket until Enter has received the Node;
// they send one after the other, and the list follows the last one. The package has no
// mutex.
//
// # Words
//
//   - gate: the held Node that lets one process at a time wait for room.
//   - maximum: how many participants the directory may have. It can change.
//   - ticket: one lease on its way into the directory.
//   - proven: of a listing, that it was asked for after the create was answered: a znode
//     that it does not show is gone. The list behind a create is not proven; it counts
//     only if it shows the znode.
package leases
