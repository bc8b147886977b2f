// Package watches sets the watches of a connection, and shares them: at most one is
// pending for a path, on whose event all wait. A watch on a znode's data tells as well
// since when the znode has been the same one. The package knows no queue, and the
// connection only as a [Conn].
//
// A Client has no watch on a znode that does not exist. Who waits for one to appear
// watches its parent's children (WatchChildren).
//
// # Files
//
// Each uses only those below it.
//
//   - birth.go: since when a znode has been the same one.
//   - watch.go: how a watch is set, or shared.
//   - shared.go: Conn, Shared; which of the pending watches are over.
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
//   - over: of a watch, that nothing will come of it.
//   - retired: of a watch, that nobody else is to share it, but that the client keeps.
//
// # Goroutines and locks
//
// A watch is set by a call of package calls, which has a goroutine. There is none that
// waits for a watch: the client's channel is handed to those who wait.
//
// Shared.mu is held during no call of a Conn. Sweep and SaidClosed ask nothing and call
// nobody back; nor does IncarnationNow, but for Conn.AwaySince.
package watches
