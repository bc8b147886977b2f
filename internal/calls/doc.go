// Package calls runs calls that outlast their callers. The client's calls take no ctx: a
// [Pending] runs on its own goroutine, and keeps its connection in use until it ends; its
// caller may leave at any time. The package knows nothing of the connection but an
// [Owner].
//
// A Pending has not begun (New), is under way (Run; Start does both), or has ended: then
// its value and error do not change.
//
// # Goroutines
//
// Each call has one, which ends with the function that it was given; so has each Then,
// which ends after the call. Nobody has to wait for them.
//
// The package has no mutex. Run, and so Start, Then and Call, calls Retain of the Owner,
// and the goroutine of the call Release at its end.
package calls
