// Package watches sets the watches of a connection, and shares them: at most one is
// pending for a path, and all wait for its event. A watch on a znode's data also shows
// since when the znode has been the same one. The package knows no queue, and the
// connection only as a [Conn].
//
// A Client cannot watch a znode that does not exist. To wait for one to appear, watch its
// parent's children (WatchChildren).
//
// # A watch
//
//	being set ──► pending ──► over, by its event or since it could not be set
//	                 │
//	                 └ may be dead: the connection was away since
//
// # Words
//
//   - birth, incarnation: of a znode that a watch is pending on, the zxid that created
//     it: it has been the same one since (Incarnation).
//   - over: of a watch, that no event of it will come any more.
//   - retired: of a watch, that nobody else is to share it, but that the client keeps.
//
// # Goroutines and locks
//
// A watch is set by a call of package calls, which has a goroutine. No goroutine waits
// for a watch: those who wait receive the client's channel.
//
// Shared.mu is held during no call of a Conn. Sweep and SaidClosed send no request and
// call nobody back. IncarnationNow calls only Conn.AwaySince.
package watches
