package order

import "github.com/zkrecipes/recipes/internal/seqname"

// An Epoch counts how often the connection has been away. The driver reads it from the
// connection; it never decreases.
type Epoch uint64

// A moment orders the facts, as they were told.
type moment uint64

// A lapsing is something that is true in one epoch only: zero, or that epoch plus one.
type lapsing uint64

func in(e Epoch) lapsing { return lapsing(e) + 1 }

func (l lapsing) holds(now Epoch) bool { return l == in(now) }

// A Question is the time at which a request was sent, or at which a watch was known to
// be pending. It comes from [Queue.Asking] and goes back with the answer. It is a value,
// and may be used for several answers.
type Question struct {
	at    moment
	epoch Epoch
	// firm: the server has applied all that this process had seen before the epoch
	firm bool
	// the incarnation of the directory that the last list had shown by then
	directory int64
}

// A Listing is what a server said of the directory.
type Listing struct {
	// Names are as [seqname.Participants] returns them. The queue keeps the slice.
	Names []seqname.Name
	// Czxid and Pzxid are of the directory's Stat in the same answer: its incarnation,
	// and the last create or delete among its children. A directory that does not exist
	// is the zero Listing.
	Czxid, Pzxid int64
}
