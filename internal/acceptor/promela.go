package acceptor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A sight is one thing that a trace shows of the model: what, as test/model/queue.pml
// calls it, and of which owner.
type sight struct {
	what  string
	who   int
	after int // it happened after this line, and before the next
}

// stranger is the model's owner who has a connection of his own.
const stranger = 2

// ownerOf is the model's owner who has written a line: 0 and 1 are of worker 0.
func ownerOf(l Line) (owner int, err error) {
	switch {
	case l.Worker == 0 && l.Owner < stranger:
		return l.Owner, nil
	case l.Worker == 1 && l.Owner == 0:
		return stranger, nil
	}
	return 0, errors.New("acceptor: the model has no such owner")
}

// A story is a trace as the model can tell it.
type story struct {
	sights []sight
	owners map[string]int // of znodes
	there  map[string]int64
	meddle map[string]bool // with which of them somebody else is about to
	faults int
	rounds [3]int

	connected bool // A was, once
}

// Promela writes a small trace as a model. It includes queue.pml, goes along with it for
// as long as that does what the trace shows, and violates an assertion if both come to
// their end.
func Promela(trace []Line) (string, error) {
	s := &story{
		owners: map[string]int{}, there: map[string]int64{},
		meddle: map[string]bool{},
	}
	for _, l := range trace {
		if l.Kind == "queued" || l.Kind == "granted" {
			owner, err := ownerOf(l)
			if err != nil {
				return "", err
			}
			s.owners[l.Node] = owner
		}
	}
	for i, l := range trace {
		if l.Kind == "over" {
			break
		}
		s.tell(trace, i, l)
	}
	slices.SortStableFunc(s.sights, func(a, b sight) int {
		return cmp.Compare(a.after, b.after)
	})
	return s.model(), nil
}

func (s *story) see(what string, who, after int) {
	s.sights = append(s.sights, sight{what, who, after})
}

func (s *story) tell(trace []Line, i int, l Line) {
	owner, isOwned := s.owners[l.Path]
	switch {
	case l.Kind == "committed" && l.Op == "close":
		for node, session := range s.there {
			if session == l.Session {
				s.faults++
				s.see("REMOVE", s.owners[node], i)
				delete(s.there, node)
			}
		}
	case l.Kind == "committed" && isOwned && l.Op == "create":
		s.there[l.Path] = l.Session
		s.see("CREATE", owner, i)
	case l.Kind == "committed" && isOwned && l.Op == "delete":
		delete(s.there, l.Path)
		if s.meddle[l.Path] {
			s.faults++
			s.see("MEDDLE", owner, i)
		}
		s.see("REMOVE", owner, i)
	case l.Kind == "answered" && l.Worker == 0 && l.Op == "getChildren2":
		s.see("LIST", 0, executed(trace, i))
	case l.Kind == "answered" && l.Worker == 0 && l.Watch && isOwned && owner < stranger:
		s.see("OWN", owner, executed(trace, i))
	case l.Kind == "answered" && l.Worker == 0 && l.Op == "connect":
		if s.connected {
			s.faults++ // there was an outage
		}
		s.connected = true
	case l.Kind == "removing":
		s.meddle[l.Node] = true
	default:
		s.tellOwner(i, l)
	}
}

// tellOwner takes what an owner does or sees. Of the stranger the model shows only that
// he holds the lock.
func (s *story) tellOwner(i int, l Line) {
	owner, _ := ownerOf(l)
	switch l.Kind {
	case "called":
		s.rounds[owner]++
	case "granted":
		s.see("HOLD", owner, i)
	case "releasing":
		if owner < stranger {
			s.see("LEAVE", owner, i)
		}
	case "lost":
		if owner < stranger {
			s.see("TOLD", owner, i)
		}
		for node := range s.there { // else that it is gone has told him
			if s.owners[node] == owner {
				s.faults++
			}
		}
	}
}

// executed is the line after which a read was executed that is answered at i: behind its
// request, and the transactions that its server had.
func executed(trace []Line, i int) (at int) {
	for j, l := range trace[:i] {
		isRequest := l.Kind == "sent" && l.Client == trace[i].Client &&
			l.Xid == trace[i].Xid
		if isRequest || l.Kind == "committed" && l.Zxid <= trace[i].Zxid {
			at = j
		}
	}
	return at
}

func (s *story) model() string {
	var b strings.Builder
	b.WriteString("#define TRACE\n#define CANCELS 0\n")
	fmt.Fprintf(&b, "#define FAULTS %d\n", s.faults)
	for owner, n := range s.rounds {
		fmt.Fprintf(&b, "#define ROUNDS%d %d\n", owner, n)
	}
	fmt.Fprintf(&b, "#define LENGTH %d\n", len(s.sights))
	b.WriteString("byte seen; /* so many lines of the trace */\n" +
		"bit astray; /* something else has happened */\n" +
		"#define AS_SEEN provided (!astray)\n" +
		"#define NEXT(what, who) (")
	for i, x := range s.sights {
		if i > 0 {
			b.WriteString(" || \\\n\t")
		}
		fmt.Fprintf(&b, "(seen == %d && what == %s && who == %d)", i, x.what, x.who)
	}
	b.WriteString(")\n#define SEEN(what, who) " +
		"if :: NEXT(what, who) -> seen++ :: else -> astray = 1 fi\n" +
		"#include \"queue.pml\"\n")
	return b.String()
}
