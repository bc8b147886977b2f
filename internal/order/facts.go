package order

import (
	"github.com/zkrecipes/recipes/internal/seqname"
)

// An Epoch counts how often the connection has been away. The driver reads it from the
// connection; it never decreases.
type Epoch uint64

// A moment orders the facts as they were reported.
type moment uint64

// A lapsing is something that is true in one epoch only: zero, never; else that epoch
// plus one.
type lapsing uint64

func in(e Epoch) lapsing { return lapsing(e) + 1 }

func (l lapsing) isTrue(now Epoch) bool { return l == in(now) }

// A Stamp says when a request was sent, or when a watch was known to be pending. It comes
// from [Queue.Asking] and goes back with the answer. It is a value, and may be used for
// several answers.
type Stamp struct {
	at    moment
	epoch Epoch
	// firm: the server has applied all that this process had seen before the epoch
	firm bool
	// the incarnation of the directory by the last list at that time
	incarnation int64
}

// A Plan is what to send with a create.
type Plan uint8

const (
	// WithList says to send a list right behind the create, without waiting for its
	// answer.
	WithList Plan = iota
	// WithDirectory says to send no list if the connection tells the czxid of each create
	// and the driver can watch the directory ([Queue.LearnIncarnation]), which it begins
	// now. Otherwise it does as for WithList.
	WithDirectory
	// NoList says to send nothing with it. A member of this process goes first most
	// likely.
	NoList
)

// A Creation is what a create has made.
type Creation struct {
	Name    seqname.Name
	Session int64 // that the znode lives in
	// Czxid of the znode; zero if it is not known.
	Czxid int64
	// Epoch that was read before the request was sent whose answer showed the znode: the
	// create itself, or the search for a create of unknown outcome.
	Epoch Epoch
	// Orphans: an earlier create of the same owner had an unknown outcome. Its znode can
	// be in the directory as well, ahead or behind. The driver deletes orphans that it
	// sees in any list that it reports after Created; until one has shown the member,
	// nothing else decides.
	Orphans bool
	// Under is the held writer whose number the znode was created with. It has to be a
	// member of the same queue. Nil for all others.
	Under *Member
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
