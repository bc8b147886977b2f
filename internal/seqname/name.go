package seqname

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Name is the name of a znode that stands in a queue: any text, then the recipe's name,
// then the sequence number that the server appended. The creator does not matter: Curator
// and this library write "_c_<uuid>-lock-0000000007", zk.Lock "_c_<32
// hex>-lock-0000000007", others a bare "lock-0000000007".
type Name struct {
	Text string
	Kind string // the recipe's name, such as "lock-"
	Seq  int32
}

const seqDigits = 10 // at least: the server prints %010d

// Parse reads text as a participant of one of the given kinds; false if it is none.
func Parse(text string, kinds []string) (Name, bool) {
	for _, kind := range kinds {
		if seq, ok := parseSeq(text, kind); ok {
			return Name{Text: text, Kind: kind, Seq: seq}, true
		}
	}
	return Name{}, false
}

// parseSeq reads the number that follows kind at the end of text: ten characters, or
// eleven for a number below -999999999. Such numbers exist once the server's signed
// 32-bit counter has wrapped.
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

// Number is the sequence number as the server printed it.
func (n Name) Number() string {
	return n.Text[strings.LastIndex(n.Text, n.Kind)+len(n.Kind):]
}

// Before reports whether n is ahead of self, judged relative to self alone. Numbers
// compare by serial-number arithmetic (RFC 1982): the counter is signed, and wraps in
// servers before 3.6. Equal numbers, which a read lock and its owner's write lock have on
// purpose, go by the text, so that every process sees one order.
func (n Name) Before(self Name) bool { return Compare(n, self) < 0 }

// Compare orders two names as their znodes were created; see [Name.Before]. It is not
// transitive among numbers that are far apart: three of them can form a cycle. It is a
// total order among names that pass [CheckSpread].
func Compare(a, b Name) int {
	return compareFrom(b.Seq, a, b)
}

// Participants returns the participants among children, in the order of the queue, and
// ignores all other children. Numbers that are far apart can form a cycle, so names are
// sorted by their distance from the least of them: the order does not depend on that of
// children, and is certain only if [CheckSpread] returns nil.
func Participants(children, kinds []string) []Name {
	names := make([]Name, 0, len(children))
	base := int32(math.MaxInt32)
	for _, child := range children {
		if name, ok := Parse(child, kinds); ok {
			names = append(names, name)
			base = min(base, name.Seq)
		}
	}
	slices.SortFunc(names, func(a, b Name) int { return compareFrom(base, a, b) })
	return names
}

// compareFrom orders two names by the distance of their numbers from base, and equal
// numbers, which are few, by the text.
func compareFrom(base int32, a, b Name) int {
	if a.Seq != b.Seq {
		return cmp.Compare(a.Seq-base, b.Seq-base)
	}
	return cmp.Compare(a.Text, b.Text)
}

// SpreadLimit is how far apart the numbers in a queue may be. No real queue comes near
// it: that many znodes would have to be created while one stays.
const SpreadLimit = 1 << 30

// Far reports whether two numbers are not of one queue.
func (n Name) Far(b Name) bool {
	distance := n.Seq - b.Seq
	return distance >= SpreadLimit || distance <= -SpreadLimit
}

// Apart returns the first and the last of a queue, as [Participants] returns it, and
// reports whether their numbers are so far apart that the order is not certain: 2^30 or
// more.
func Apart(queue []Name) (first, last Name, apart bool) {
	if len(queue) == 0 {
		return Name{}, Name{}, false
	}
	first, last = queue[0], queue[len(queue)-1]
	return first, last, uint32(last.Seq-first.Seq) >= SpreadLimit
}

// CheckSpread returns an error for a queue, as [Participants] returns it, if its numbers
// are too far apart; see [Apart]. Some of them were made by hand: a client with the
// permission CREATE can give a znode any number. No retry fixes that. The caller adds the
// path.
func CheckSpread(queue []Name) error {
	first, last, apart := Apart(queue)
	if !apart {
		return nil
	}
	return fmt.Errorf("the order is not certain: the numbers of %s and %s are too far "+
		"apart; delete the one that no lock created", first.Text, last.Text)
}

// IsMember tells whether text is the name of a participant of one of the given kinds.
func IsMember(text string, kinds ...string) bool {
	_, ok := Parse(text, kinds)
	return ok
}

// Numbered returns the name of a znode of the given kind that was created just now. It
// fails if that has no sequence number, or one so large that the server may hand it out
// twice.
func Numbered(path, kind string) (Name, error) {
	dir, text := zkpath.Split(path)
	name, ok := Parse(text, []string{kind})
	switch {
	case !ok:
		return name, fmt.Errorf("%w: created %s, which has no sequence number",
			zk.ErrAPIError, path)
	case nearLimit(name.Seq):
		return name, fmt.Errorf("the sequence counter of %s is at %d, near its end at "+
			"2147483647, where ZooKeeper hands out equal numbers (ZOOKEEPER-4706): "+
			"delete %s while nobody uses it, or lock another path", dir, name.Seq, dir)
	}
	return name, nil
}

// limitMargin is far more than the creates that can be under way at once.
const limitMargin = 1 << 16

// nearLimit reports whether the counter is so close to 2^31-1 that the server may hand
// out one number twice: from 3.6 on it sticks there, with numbers around -2^31 in between
// (ZOOKEEPER-3249, ZOOKEEPER-4706).
func nearLimit(seq int32) bool {
	return seq > math.MaxInt32-limitMargin || seq < math.MinInt32+limitMargin
}
