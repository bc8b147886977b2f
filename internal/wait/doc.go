// Package wait is the one loop in which the locks wait, and what ends a sleep. It knows
// no queue: what is waited for is a [Goal].
//
// # One loop
//
// [Until] checks the goal. If that is not free, the goal sleeps until something may have
// changed, and is checked again. Once it is free the goal commits to it. A second loop
// in which a lock waits for other processes is not allowed.
//
// # A new Goal
//
// It belongs to the package that knows what is waited for, not to a recipe. Its Check
// gets the channel of zkconn.Conn.Reconnected first, then sets its watches, then asks;
// its Wait sleeps on all of these, and on Ended of the Node that it waits with. The
// caller of Until gives the Nodes up on an error (znode.GiveUp). After znode.ErrEnded it
// may join again. leases.Maximum.Await has a small Goal to start from.
//
// # Goroutines and locks
//
// The package has no mutex. A Goal, and its [Wakers], belong to the goroutine that calls
// Until. The client's calls cannot be cancelled, so a Goal makes them by calls.Pending.
// The package makes none itself but the sync of [AskBeforeEnd], on a timer's goroutine.
//
// # Words
//
//   - goal: a turn in the queue, room for leases, a maximum, or having seen enough.
//   - waker: a channel that can end a sleep. A poll comes with each watch, and guards
//     against a lost one.
//   - own znode: an ephemeral of this process, which learns of its end from any watch.
//   - explain: to add to an error what the wait was waiting for when it ended.
package wait
