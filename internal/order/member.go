package order

import (
	"github.com/zkrecipes/recipes/internal/seqname"
)

// A state is where a member is in its life.
type state uint8

const (
	stateWaiting    state = iota
	stateHeld             // an owner relies on it
	stateInUse            // its owner has left; something may be done under its znode yet
	stateLost             // it was held; its owner may not have heard of the loss yet
	stateHandedOver       // it ended, and nothing can be done under its znode any more
	stateRemoved          // it is no member any more
)

// A Member is a participant of this process: a znode that this connection created. It
// belongs to one [Queue].
type Member struct {
	// Set by Created.
	name    seqname.Name
	session int64
	under   *Member // the writer that it reads under, with its number; else nil
	epoch   Epoch   // of its creation
	joined  moment  // when its creation was reported

	// token is the fencing token, except of a reader under a writer, which has that one's
	// (Token); zero while it is not known; set once.
	token int64

	// state only moves forward, but for Queue.NotHeld. first is of a hold: nobody at all
	// was ahead. ended is set as soon as state is past stateHeld, and again if it changes
	// after that.
	ended moment
	state state
	first bool

	// met: another process was in its way, or may have been, since a number between the
	// watermark and its own is not ours. The next create then has a list with it.
	met bool
	// orphans, set by Created: other znodes of the same creation can be in the directory.
	orphans bool

	// confirmed: the znode was read, and the watch on it is pending. Not set of one that
	// has ended.
	confirmed lapsing
	// doubted: what was known before that moment grants nothing.
	doubted moment

	// Driver is the driver's. The queue does not read it.
	Driver any
}

// Name is the znode's name.
func (m *Member) Name() seqname.Name { return m.name }

// Token is the fencing token, zero while it is not known. It is the znode's czxid, or the
// directory's pzxid in a list that shows nobody behind the member. Both are greater than
// the tokens of all ahead and less than those of all behind. A reader under a writer has
// that one's. It does not change once it is known.
func (m *Member) Token() int64 {
	if m.under != nil {
		return m.under.token
	}
	return m.token
}

// lives reports whether the member waits or is held.
func (m *Member) lives() bool { return m.state <= stateHeld }

func (m *Member) learnToken(token int64) {
	if m.token == 0 {
		m.token = token
	}
}

// letsPass reports whether self, of the same session, need not wait for m any more.
func (m *Member) letsPass(self *Member) bool {
	return m.state == stateHandedOver && m.session == self.session
}
