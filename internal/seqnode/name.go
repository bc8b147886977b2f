package seqnode

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/zkrecipes/recipes/internal/session"
)

// A Name is the name of a znode that stands in a queue: anything, then the recipe's name,
// then the sequence number that the server appended. Who made it does not matter: Curator
// and this library write "_c_<uuid>-lock-0000000007", zk.Lock "_c_<32
// hex>-lock-0000000007", others a bare "lock-0000000007".
type Name struct {
	Text string
	Kind string // the recipe's name, such as "lock-"
	Seq  int32
}

const seqDigits = 10 // at least: the server prints %010d

// parse reads text as a participant of one of the given kinds; false where it is none.
func parse(text string, kinds []string) (Name, bool) {
	for _, kind := range kinds {
		if seq, ok := parseSeq(text, kind); ok {
			return Name{Text: text, Kind: kind, Seq: seq}, true
		}
	}
	return Name{}, false
}

// IsMember tells whether text is the name of a participant of one of the given kinds.
func IsMember(text string, kinds ...string) bool {
	_, ok := parse(text, kinds)
	return ok
}

// parseSeq reads the number that stands behind kind at the end of text: ten characters,
// or eleven of a number below -999999999, which there is once the server's signed 32-bit
// counter has wrapped.
func parseSeq(text, kind string) (int32, bool) {
	at := len(text) - seqDigits
	if at > 0 && text[at-1] == '-' && text[at] != '0' &&
		strings.HasSuffix(text[:at-1], kind) {
		at--
	}
	if at < 0 || !strings.HasSuffix(text[:at], kind) || text[at] == '+' {
		return 0, false
	}
	seq, err := strconv.ParseInt(text[at:], 10, 32)
	if err != nil {
		return 0, false
	}
	return int32(seq), true
}

// number is the sequence number as the server printed it.
func (n Name) number() string {
	return n.Text[strings.LastIndex(n.Text, n.Kind)+len(n.Kind):]
}

// compare orders names as their znodes were created, by serial-number arithmetic (RFC
// 1982): the counter is signed, wraps in servers before 3.6, and has no znodes that are
// 2^31 apart. Those made by hand can be: see checkSpread. Equal numbers, which a read
// lock and its owner's write lock have on purpose, go by the text, so that every process
// sees one order.
func compare(a, b Name) int {
	return cmp.Or(cmp.Compare(a.Seq-b.Seq, 0), cmp.Compare(a.Text, b.Text))
}

// participants returns those among children, in the order of the queue. All other
// children are ignored. The order is certain only if checkSpread finds nothing wrong:
// among numbers that are far apart compare can form a cycle, in which everybody comes
// before somebody else. So the names are sorted by how far they are from one of them.
func participants(children []string, kinds []string) []Name {
	names := make([]Name, 0, len(children))
	for _, child := range children {
		if name, ok := parse(child, kinds); ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return names
	}
	base := names[0].Seq
	slices.SortFunc(names, func(a, b Name) int {
		return cmp.Or(cmp.Compare(a.Seq-base, b.Seq-base), cmp.Compare(a.Text, b.Text))
	})
	return names
}

// spreadLimit is how far apart the numbers in a queue may be. No real queue comes near
// it: so many znodes would have to join while one stays. Below it compare is a total
// order.
const spreadLimit = 1 << 30

// checkSpread returns an error for a queue, as participants returns it, whose numbers are
// so far apart that their order is not certain. Some of them were made by hand: whoever
// has the permission CREATE can give a znode any number.
func checkSpread(dir string, queue []Name) error {
	if len(queue) == 0 {
		return nil
	}
	first, last := queue[0], queue[len(queue)-1]
	if uint32(last.Seq-first.Seq) < spreadLimit { //nolint:gosec // it is not negative
		return nil
	}
	return session.Permanent(fmt.Errorf("the order in %s is not certain: the numbers of "+
		"%s and %s are too far apart; delete the one that no lock created",
		dir, first.Text, last.Text))
}

// limitMargin is far more than the creates that can be under way at once.
const limitMargin = 1 << 16

// nearLimit tells whether the counter is so close to 2^31-1 that the server may hand out
// one number twice: from 3.6 on it sticks there, with numbers around -2^31 in between
// (ZOOKEEPER-3249, ZOOKEEPER-4706).
func nearLimit(seq int32) bool {
	return seq > math.MaxInt32-limitMargin || seq < math.MinInt32+limitMargin
}

const protectedPrefix = "_c_" // Curator's ProtectedMode

// newID returns a random UUID (RFC 9562, version 4), by which a process finds a znode
// whose creation was not acknowledged.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// hasID tells whether a znode's name was made with the id.
func hasID(name, id string) bool {
	return strings.HasPrefix(name, protectedPrefix) &&
		strings.HasPrefix(name[len(protectedPrefix):], id)
}
