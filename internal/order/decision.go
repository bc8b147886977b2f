package order

import (
	"github.com/zkrecipes/recipes/internal/seqname"
)

// An Ask is what the driver has to find out before it calls Decide again.
type Ask uint8

const (
	// Nothing is to be asked: the decision stands until a fact is reported.
	Nothing Ask = iota
	// List says to list the directory, after a sync if Decision.Sync is set, and report
	// [Queue.Listed]. A list under way will do if [Queue.Serves] says so; so will the one
	// that was sent behind m's create, once it is reported after Created.
	List
	// ReadAhead says to read the znodes in Decision.Reads, all at once, with one Stamp,
	// and report [Queue.There] or [Queue.Gone] of each.
	ReadAhead
	// ConfirmOwn says to read m's own znode with a watch, and report its token
	// ([Queue.LearnToken]), the only thing that is missing, and [Queue.Confirmed].
	ConfirmOwn
)

// A Decision says what a member has to do. Exactly one of Granted, Over, Behind and Ask
// is set.
type Decision struct {
	// Granted: it is the member's turn. First: nobody at all is ahead, whether or not it
	// excludes the member. Only a grant has First. It may overlook a reader under a
	// writer of this process that ended before the reader's Created was reported: that
	// reader is over anyway. If the token is not known, the driver finds it out, and
	// reports it before it calls Held.
	Granted, First bool

	// Over: the member has ended, or the writer that it reads under has. Its owner
	// rejoins, after Left or Lost if the member has not ended.
	Over bool

	// Behind is the blocker: wait until it has gone, by a watch on its znode, then report
	// [Queue.Gone]. Its Text is empty if there is none. It is never one that was reported
	// gone since it was last seen, unless that is forgotten (absentAtMost).
	Behind seqname.Name
	// Beyond is the next one in the way, past Behind. Once it has gone, a list can show
	// that only Behind is left. Then the end of that grants without a request, if m is
	// confirmed by then. Its Text is empty if there is none, or if watching it is not
	// worth it; and unless m is the first of this process, since one ahead of m may wait
	// for the same event, which a shared watch has once.
	Beyond seqname.Name
	// Local is the blocker if it is a member that lives, of the same session. No watch is
	// set on it: call Decide again after its Left, Lost or Removed. The driver begins to
	// watch the directory ([Queue.LearnIncarnation]) if it does not, so that numbers can
	// tell who is next.
	Local *Member
	// Next: as far as is known, nobody but Behind is in the way.
	Next bool
	// Confirm: confirm m's own znode now, by a read with a watch, besides waiting for
	// Behind. Either the token is not known, or Behind is the last in the way, and its
	// end grants only if m is confirmed by then.
	Confirm bool
	// Useful: if the wait lasts, a confirmation can spare a list once Behind has gone.
	// Otherwise there is one in any case then, which shows m.
	Useful bool

	Ask Ask
	// Sync, of List: the server may lag behind what was seen before the reconnect.
	Sync  bool
	Reads []seqname.Name // of ReadAhead, the nearest first; at least two

	// Ahead is how many participants are ahead, as far as is known, whether or not they
	// exclude the member. It counts members that have left, until their znodes are gone.
	// Of ByNeighbour it is a guess: nothing was asked about others.
	Ahead int
	// By is the source of the decision; zero if there is a question to ask. Only tests
	// read it: what the model accepts of a grant depends on it.
	By Sources
}
