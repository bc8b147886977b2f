// Package observe lists a queue, and looks at it from outside. It creates no znode and
// grants nothing.
//
// A [Queue] serves those that do not stand in it: who is there (Members), and each change
// (Follow, FollowHead). A [Lint] finds what should not be in the directory.
//
// # Goroutines and locks
//
// The package has no mutex. Each request runs on a goroutine of its own, which
// calls.Start begins; its caller waits next to it. A follower belongs to the goroutine
// that waits. An [Observer] is called by the goroutine in Follow.
//
// # Words
//
//   - lagging: the server may lag behind what was seen, and no sync has succeeded since.
//   - foreign: a znode in the directory that does not stand in the queue.
package observe
