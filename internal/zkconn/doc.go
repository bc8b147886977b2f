// Package zkconn keeps what all locks on one ZooKeeper connection share: the requests,
// each of which it records; until when the session can be relied on; the watches that are
// pending; and the znodes of this process that live in the session. It knows no queue and
// no lock.
//
// A [Conn] belongs to a connection, not to one ZooKeeper session: the connection goes
// through many of them, one after the other. It is found by its Client (Use), counts its
// users (Retain, Release), and is forgotten with the last of them, so that nothing global
// outlives its use. A Conn that knows what the next user needs (a pending watch, or that
// the server has no containers) is checked now and then, and forgotten when that is over;
// notes keep it for ten seconds.
//
// # Words
//
//   - session: a ZooKeeper session, by its id.
//   - request: one call of the Client, from before it is sent to its answer.
//   - contact: a request that has certainly reached the leader. Writes that the leader
//     judged and syncs are contacts, reads are not; see internal/lossclock.
//   - ephemeral, margin, alarm: see internal/reliance.
//   - refusal: an answer that ends a call; an obligation outlasts it (Insist).
//   - tick: a look at the client's state, every 100 ms or less, and what follows from it.
//   - heartbeat: the sync that the tick sends when there was no other contact. The loss
//     clock says when (NextSync). There is one for all users of the connection, even if
//     none of them holds anything. It rests while all ephemerals do.
//   - rest: of an ephemeral, that it is far from its turn (Rest, Approach).
//   - note: what a user has learned and may want to know again (Note).
//   - reconnect: the connection was away, and has a session again, the same or another.
//   - unavailable: ZooKeeper does not answer. It decides what callers receive, and does
//     not affect holds.
//   - incarnation: a znode from its create to its delete, by the zxid of that create.
//   - over: of a watch, that no event of it will come any more.
//   - retired: of a watch, that nobody else is to share it, but that the client keeps.
//
// # Goroutines
//
// A request blocks for as long as the client lets it, up to ten session timeouts. So each
// runs on a goroutine of its own, which ends with the request, and is a user of the Conn
// until then (package calls). Its caller waits on another goroutine, and may leave at any
// time.
//
// While there are users, a timer runs tick. It starts heartbeats, each on a goroutine of
// its own: one after the other if answers are fast, and a bounded number at a time if
// they are slow. A Conn that is kept without users has a timer that checks it. There is
// no other goroutine: those who wait for a watch receive the client's channel.
//
// An ephemeral is notified by the goroutine that finds out: that of the tick, or the one
// that calls ConnClosed. An alarm is called by the tick.
//
// # Locks
//
// A caller may hold a mutex of its own when it calls calls.Start, Retain, Track, Untrack,
// Hold, Judge, Until, Rest, CheckMargin, After and its stop, Note, Noted, Ephemeral,
// HoldBack, SessionID, Epoch, IncarnationNow, Reconnected or Unavailable: these send no
// request, do not wait, and call nobody back. Any other call may send, wait or call back,
// and is made with no mutex held.
//
// Within this package registry.mu comes first, then Conn.mu. With either of them held,
// SessionID and State of the Client and the functions of Config may be called: they must
// not call this package, and the code that runs Config.WhenClosed's f must hold no lock
// that they take. With a mutex held, no request is made, and no Ephemeral is notified.
package zkconn
