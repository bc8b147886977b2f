// Package seqnode is the queue that the recipes stand in: a directory of ephemeral
// sequential znodes. A recipe is a name for its znodes and a rule ([order.Excludes]);
// joining, waiting and leaving are the same for all. The package knows no recipe and no
// owner.
//
// It is the driver of an [order.Queue]: package order decides whose turn it is, from
// facts, and this package finds them out. Package znode has the life of a znode, from its
// create to its delete; package wait has the loop in which locks wait.
//
// # The way of an acquisition
//
//	Enter ─ Create ─ Sending ── Created ──► Check ◄──────────────┐
//	                 (the create, and       │ decide, ask, ...    │ Wait: sleep until
//	                 a list behind it)      ▼                     │ a fact may be new
//	                                     granted? ── no ──────────┘
//	                                        │ yes
//	                                        ▼
//	                                     Commit ── the Node is held
//
// A waiter asks order for a decision, does what the decision demands (a list, a few
// reads, its own znode), reports the answer, and asks again. If there is somebody to wait
// for, it sleeps on a watch, or on the Node of this process that goes first. A waiter
// that finds its Node ended starts over, with a new znode at the tail (znode.ErrEnded).
//
// # Who reports which fact
//
//	Remember              newCohort: what the last cohort of the queue has noted
//	Creating              Member.Sending, just before the create
//	Created, NotCreated   Member.Created, on the goroutine of the create
//	Listed                cohort.report, once for each list, however many wait for it
//	Gone, There           waiter.Wait, cohort.read: events and reads of others' znodes
//	Directory             cohort.decide: what the watch on it says just now
//	Confirmed,            cohort.confirmLocked: likewise of the watch on the member's
//	Unconfirmed           own znode, before a decision and a hold; and LearnToken
//	Doubt                 waiter.sleep: an event, or a poll, that says nothing certain
//	Held, NotHeld         waiter.Commit
//	Left, Lost, Removed   Member.End and Member.Removed, as the Node ends
//
// Asking comes before each request whose answer is reported.
//
// Package order says what must be passed with each. Two rules ensure that here. An epoch
// or a Stamp is read before its request is sent. And under one mutex the watches are
// polled, then the epoch is read, then the decision is made: so nothing that a member of
// the cohort has reported before can be newer than what the watches showed.
//
// # Goroutines
//
// The caller's goroutine, in Enter, EnterUnder or EnterThrough, owns the waiter. The
// goroutine that sends a create calls Sending and Created of its Member, and begins the
// list behind it, so that both are under way at once. A list that is shared has one of
// its own, which reports it. End is called by the goroutine that ends the Node, Removed
// and Data by those of package znode. Listener.Queued, OnDecision and a Lint are called
// by the caller's goroutine.
//
// # Locks
//
// cohort.mu guards what a cohort says it does, and a Member's self and early. It comes
// before the mutexes of the packages below. Nobody who has it calls ZooKeeper, waits for
// anything, calls what a Request brings, or ends a Node: End and Removed take it. (End
// itself holds it while it ends the Node: the order and the holder learn of that in one
// step.) That is why a list returns the members that it does not show, and why the event
// of a watch on a member's own znode is acted on after the decision
// (znode.Node.DrainEvent).
//
// # Words
//
//   - cohort: the Members of one connection in one queue, and what they know together.
//   - Member: one Node of ours and its part in the order (self).
//   - decided: what a waiter keeps of a decision. local: the participant to wait for, if
//     it is of this process and session. No watch is set on its znode: its Node reports
//     its end.
//   - Position: how many are ahead, and whom one waits for, as users receive it.
//   - rest: of a waiter, that it is far from its turn: as far as is known, others than
//     its blocker have to go first. It needs no proof of its session yet, so none is
//     asked for (znode.Node.Rest). It does not learn when those ahead of its blocker
//     leave. So its turn may come at once: then a sync asks for proof, while a list or
//     reads show whose turn it is.
//   - approach: to end a rest, once the turn may be near.
//   - beyond: the next participant to wait for, past the blocker.
//   - stall: how long a waiter stays in a queue in which nobody ahead leaves.
//   - gate: a held Node of another queue, in front of this one.
//   - under: a read lock of the owner of a write lock takes a place under that writer,
//     with its number, and waits for nobody.
package seqnode
