package survey

import (
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

// A Participant is a znode in a lock's queue, or the two of an exclusive run.
type Participant struct {
	queues.Row
	// Held is since when it holds: the zero time if it waits.
	Held time.Time `json:"heldSince,omitzero"`
	// Address is that of its session's connection; "": it is not known.
	Address string `json:"address,omitempty"`
}

// Who is what a participant is called.
func (p Participant) Who() string {
	switch {
	case p.Session == queues.NoSession:
		return "nobody (" + p.Node[strings.LastIndex(p.Node, "/")+1:] + ")"
	case p.Data == "":
		return "session " + p.Session
	}
	return text.Shorten(p.Data, stayData)
}

// A Stay is a participant that has left.
type Stay struct {
	Node    string    `json:"node"`
	Kind    string    `json:"kind"`
	Session string    `json:"session"`
	Data    string    `json:"data"`
	Since   time.Time `json:"since"`
	Held    time.Time `json:"heldSince,omitzero"` // zero: it was not seen to hold
	Left    time.Time `json:"left"`
}

// stayData bounds the data of a Stay, in characters.
const stayData = 100

// stayOf is the stay of a participant that has left.
func stayOf(p Participant, left time.Time) Stay {
	return Stay{
		Node: p.Node, Kind: p.Kind, Session: p.Session,
		Data:  text.Shorten(p.Data, stayData),
		Since: p.Since, Held: p.Held, Left: left,
	}
}

// A history is the stays of all locks, bounded in all: the oldest are forgotten first.
type history struct {
	most  int
	order []*lock // of each stay, the oldest first
}

// staysAtMost is how many stays are kept of a lock.
const staysAtMost = 200

// add keeps a stay.
func (h *history) add(of *lock, s Stay) {
	of.stays = append(of.stays, s)
	if len(of.stays) > staysAtMost {
		of.stays = of.stays[1:]
		of.dropped++ // its turn in order comes for nothing
	}
	h.order = append(h.order, of)
	if len(h.order) <= h.most {
		return
	}
	oldest := h.order[0]
	h.order[0], h.order = nil, h.order[1:]
	if oldest.dropped > 0 {
		oldest.dropped--
		return
	}
	if len(oldest.stays) > 0 {
		oldest.stays = oldest.stays[1:]
	}
}
