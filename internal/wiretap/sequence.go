package wiretap

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
)

// ShiftSequence makes clients see the sequence numbers of lock znodes offset higher than
// they are, so that a queue comes to the limit of the counter, 2147483647, within a few
// creates. It adds offset to the number at the end of every name that goes to the client
// (create replies, children, events) and takes it off in every path that goes to the
// server. The sum is a signed 32-bit number, as ZooKeeper's own counter, so it wraps, and
// is printed as ZooKeeper does: -2147483648 has one character more than the others.
//
// Concerned are strings that end in lock-, lease-, __READ__ or __WRIT__ and a number, in
// whatever packet, data included. The numbers in a Stat (cversion) stay. Set it before
// the client connects: names it has seen do not change.
func (t *Tap) ShiftSequence(offset int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shift = offset
}

func (w *wire) shift(frame []byte) []byte {
	return shiftSequence(frame, w.tap.offset())
}

func (w *wire) unshift(frame []byte) []byte {
	return shiftSequence(frame, -w.tap.offset())
}

func (t *Tap) offset() int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shift
}

var sequence = regexp.MustCompile(`(?:lock-|lease-|__READ__|__WRIT__)(\d{10}|-\d{9,10})`)

// shiftSequence works on the bytes of a frame, whatever its layout, since every string in
// it has its length in front: where the number stands at the end of a string, that length
// is found and kept true.
func shiftSequence(frame []byte, offset int32) []byte {
	if offset == 0 {
		return frame
	}
	var shifted []byte
	copied := 0 // of frame
	for _, m := range sequence.FindAllSubmatchIndex(frame, -1) {
		begin, end := m[2], m[3]
		number, err := strconv.ParseInt(string(frame[begin:end]), 10, 32)
		head, found := stringHead(frame, m[0], end)
		if err != nil || !found || head < copied {
			continue
		}
		digits := fmt.Sprintf("%010d", int32(number)+offset)
		shifted = append(shifted, frame[copied:head]...)
		shifted = binary.BigEndian.AppendUint32(shifted, uint32(begin-head-4+len(digits)))
		shifted = append(shifted, frame[head+4:begin]...)
		shifted = append(shifted, digits...)
		copied = end
	}
	if copied == 0 {
		return frame
	}
	shifted = append(shifted, frame[copied:]...)
	binary.BigEndian.PutUint32(shifted, uint32(len(shifted)-4))
	return shifted
}

// stringHead finds where the length of the string stands that ends at end and goes on to
// the left of begin. A length has zero bytes in it and a path has none, so that the
// nearest that fits is the right one.
func stringHead(frame []byte, begin, end int) (head int, found bool) {
	for head = begin - 4; head >= 4; head-- {
		if int(binary.BigEndian.Uint32(frame[head:])) == end-head-4 {
			return head, true
		}
	}
	return 0, false
}
