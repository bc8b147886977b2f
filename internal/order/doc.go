// Package order decides whose turn it is in a queue of ephemeral sequential znodes, from
// what one connection knows of it. A [Queue] is a value: its driver reports facts to it,
// and asks it with [Queue.Decide]. It sends no request and knows no clock, goroutine or
// mutex.
//
// # What the driver does
//
// The driver makes all calls of one queue under one mutex of its own. It sends no request
// while it holds that mutex, and reads an epoch before it sends:
//
//   - Before a create it calls Creating, which returns what to send with the create. If
//     that is a list, it calls Asking before the create is sent.
//   - After the create: Created or NotCreated. Then Listed, if a list was sent with the
//     create. A driver that does not wait for that list decides without it.
//   - Until the lock is granted: Decide, and do what the Decision says. Report each
//     answer, then call Decide again. Repeat a request that failed. Call Decide again,
//     too, if the epoch grew.
//   - At any time: Confirmed when the watch on the member's own znode is set, Unconfirmed
//     when it fires, LearnIncarnation for the watch on the directory, and LearnToken.
//   - When the lock is granted: Held, before anybody relies on it, or NotHeld if nobody
//     may rely on it.
//   - At the end of a member, whether waiting or held: Left or Lost at once. Then the
//     delete is sent; Removed follows once the delete is answered or abandoned. After
//     each of the two, the members whose Decision.Local it was decide again.
//
// Before the driver calls Decide of a member, it polls the watch on that member's znode
// and the one on the directory, and reports what has fired. Whatever was reported earlier
// happened before that poll. Only so does a watch that has not fired prove anything. If
// events can come late (Rules.Ordered is false) it proves nothing, and is not used.
//
// A member that ended is not used again; its owner rejoins by a new create.
//
// # Where a decision comes from
//
// Nobody joins ahead of another. So nobody can be added to the participants that were
// once seen ahead: they only become fewer. Decide takes the first source that suffices:
//
//   - The neighbour. A member is blocked by the nearest member ahead that excludes it.
//     While that one lives, nothing else matters.
//   - The number. Everybody up to the watermark has gone, or has left and does nothing
//     any more. If all participants between the watermark and a member are members, and
//     none of them is in its way, it is that member's turn. Numbers count within one
//     incarnation of the directory. A watch on the directory shows since when it has been
//     the same, and tokens show which members came since. If the last list shows somebody
//     in the way, with a number that was given twice, the list prevails.
//   - The last list, with what was reported since: who has gone, and which members have
//     left. It serves every member that it shows. Once the blocker has gone, those left
//     ahead are read one by one if they are few.
//   - A new list.
//
// # A new source
//
// It takes a constant in Sources, so that it can be switched off; a fact, which comes
// with the Stamp of its request and is kept in Queue or snapshot; and a step of
// Queue.judge, before those that cost more. If it has to be asked for, it takes an Ask,
// which waiter.ask of package seqnode carries out. The model asks for it and answers it
// (model_steps_test.go, model_driver_test.go), and has to refute a fault of it
// (model_faults_test.go).
//
// # Why a cheap answer is right
//
// It agrees with what a list in step with the leader would say. A list that shows a
// member proves a grant by itself: there was a time at which the member was there, and
// nobody ahead that excludes it. What was reported after the list was requested proves a
// grant only if the member's own znode still exists, which may be gone by then. A
// confirmation proves that it exists: a watch is set on the znode, events and answers
// come in order, and the epoch is the same. After a reconnect events come in any order,
// so confirmations, lists and the incarnation lapse with their epoch, and the first list
// follows a sync, unless the new server has answered a create.
//
// There are two deliberate exceptions. A grant by number does not prove that the member's
// own znode is there; if it is not, the watch on it notifies the holder. And readers can
// be nested: they appear under a writer that is ahead, with its number. So a participant
// that they exclude needs a list that was requested after its blocker had ended.
//
// # What is kept true
//
// The tests verify after each step what the comments on the fields say, and the
// following:
//
//   - A list cannot prove that a member is gone if that member was reported after the
//     list was requested.
//   - A znode that was reported as gone counts as gone, even if a list that was requested
//     before shows it. A list that was requested later, and shows it, disproves the
//     report. In another incarnation the same name is another znode.
//   - A list does not replace one that shows a later time.
//   - Whether one is ahead of another is judged by these two names. Serial arithmetic is
//     not transitive, and numbers made by hand can form a cycle. A list whose numbers are
//     2^30 apart or more is rejected.
//
// # Words
//
//   - moment: a number that grows with each fact. stamp: the moment at which something
//     was asked for; its answer is reported with it.
//   - member: a participant of this connection. stranger, in MetStranger: any
//     other.
//   - blocker: the nearest predecessor that excludes a member. predecessors: all that are
//     ahead of it. in the way: of one of them, that it excludes the member.
//   - watermark: the number up to which everybody has gone or handed over.
//   - incarnation: the directory from one create to its delete, known by its czxid.
//   - snapshot: the last list, and what has become of those on it. altered: of the
//     predecessors, that this changes the answer. stale: of what is known of a blocker,
//     that a nearer one has gone since.
//   - epoch: how often the connection has been away. firm: of a list, that its server has
//     applied all that was seen before the epoch. settled: of an epoch, that all its
//     lists are firm.
//   - confirmed: of a member, that its znode is watched, and no event has come.
//   - handed over: of a member that has ended, that nothing can be done under its znode.
//   - orphan: a znode that a create of unknown outcome left next to the member's.
//   - under, nested: of a reader, that it has the number of a writer of the same owner.
package order
