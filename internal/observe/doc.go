// Package observe lists a queue, and looks at it from outside. It creates no znode and
// grants nothing.
//
// A [Lister] lists for one that stands in the queue. It knows when a server may lag
// behind what was seen before, and sends a sync first. A [Queue] serves those that do not
// stand in it: who is there (Members), and each change (Follow, FollowHead). A [Lookout]
// finds what should not be in the directory.
//
// # Goroutines and locks
//
// The package has no mutex. Each request runs on a goroutine of its own, which
// calls.Start begins; its caller waits next to it. A Lister and a follower belong to
// the goroutine that waits. An [Observer] is called by the goroutine in Follow.
//
// # Words
//
//   - proven: of a listing, that it was asked for after the create was answered: a znode
//     that it does not show is gone. The list behind a create is not proven; it counts
//     only if it shows the znode.
//   - lagging: the connection was away, and no sync has succeeded since.
//   - foreign: a znode in the directory that does not stand in the queue.
package observe
