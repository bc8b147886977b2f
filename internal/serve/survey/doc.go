// Package survey knows all locks of a cluster, whichever program created them: who holds
// each, who waits, what has happened and what is wrong. It only reads.
//
// A [Survey] walks the tree once at a bounded rate, and again now and then. From then on
// it lives on watches: one on the children of each directory that is, or may become, a
// lock's, and of each directory with such ones in it. A change costs one list, and one
// read for each newcomer. Changes of a lock that come faster than it is looked at are
// one: ZooKeeper counts the creates and deletes in a directory, so a Survey can say how
// many participants came and left unseen.
//
// # Time
//
// Times are the servers' as far as ZooKeeper tells them: it notes when a znode was
// created. What it does not note, such as when a waiter became the holder, is the time of
// this machine, corrected by how far the servers' clock is known to be ahead.
//
// # Goroutines and locks
//
// Run starts one goroutine for the walks, one that asks for a sign of life each second,
// one that asks for addresses if it is told how, a few that look at what has changed, and
// one for each watch, which waits for its event. A directory is looked at by one
// goroutine at a time: its token is with the watch, with the queue of what is to be
// looked at, or with that goroutine.
//
// Survey.mu guards all that is known. It is not held during a request.
//
// # Words
//
//   - directory: a znode that other znodes can be in.
//   - look: a list of a directory's children, with a watch, and the reads of newcomers.
//   - stay: a participant from when it joined until it left.
package survey
