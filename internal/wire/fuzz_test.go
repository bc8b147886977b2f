package wire_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What zk would make of a reply that passes, by a decoder as simple as its own, which
// panics where zk's would read what is not in the reply, or allocate more than it is
// long.
type model struct{ rest []byte }

func (m *model) take(n int) []byte {
	head := m.rest[:n:n]
	m.rest = m.rest[n:len(m.rest):len(m.rest)]
	return head
}

func (m *model) int() int32 { return int32(binary.BigEndian.Uint32(m.take(4))) }

func (m *model) text() { m.take(int(uint32(m.int()))) }

func (m *model) vector(size int, element func()) {
	n := int(uint32(m.int()))
	if n*size > len(m.rest) {
		panic(fmt.Sprintf("%d elements in %d bytes", n, len(m.rest)))
	}
	for range n {
		element()
	}
}

func (m *model) data() {
	if n := m.int(); n >= 0 {
		m.take(int(n))
	}
}

func (m *model) results(limit int) {
	for n := 0; ; n++ {
		head := m.take(9)
		if head[4] != 0 {
			return
		}
		if n == limit {
			panic("more results than operations")
		}
		switch int32(binary.BigEndian.Uint32(head)) {
		case opError:
			m.int()
		case opCreate:
			m.text()
		case opSet:
			m.take(len(stat))
		case opCheck, opDelete:
		default:
			return // zk.ErrAPIError
		}
	}
}

func (m *model) decode(op int32) {
	switch op {
	case opCreate, opCreateContainer, opCreateTTL, opSync:
		m.text()
	case opExists, opSet, opSetACL:
		m.take(len(stat))
	case opGet, opReconfig:
		m.data()
		m.take(len(stat))
	case opGetACL:
		m.vector(12, func() { m.int(); m.text(); m.text() })
		m.take(len(stat))
	case opChildren:
		m.vector(4, m.text)
	case opChildren2:
		m.vector(4, m.text)
		m.take(len(stat))
	case opMulti:
		m.results(4)
	}
}

// Whatever a server says, zk gets it as it is or not at all, and what it gets it can
// decode.
func FuzzReplies(f *testing.F) {
	for _, c := range wellFormed {
		f.Add(c.op, reply(1, c.body...))
	}
	for _, op := range []int32{opGet, opChildren2, opGetACL, opMulti, opExists} {
		f.Add(op, reply(1, negative))
		f.Add(op, reply(1, huge, stat))
		f.Add(op, reply(1, result(opSet)...))
	}
	f.Add(opGet, []byte{0, 0, 0, 16})
	f.Add(opGet, packet(xidEvent, int64(-1), int32(0), int32(4), int32(3), "/a"))
	f.Fuzz(func(t *testing.T, op int32, says []byte) {
		_, stream := hear(says)
		stream.Sending(asking(op))
		got, err := readAll(stream)
		if err == nil && string(says[:len(got)]) != string(got) {
			t.Fatalf("read %q of %q", got, says)
		}
		for m := (model{got}); len(m.rest) > 0; {
			one := model{m.take(int(m.int()))}
			xid, _, code := one.int(), one.take(8), one.int()
			switch {
			case xid == xidEvent:
				one.take(8)
				one.text()
			case xid == 1 && code == 0:
				one.decode(op)
			}
		}
	})
}

// What is not zk's own request, whole, is none to which a reply may come; and nothing
// that is sent makes this package fail.
func FuzzRequests(f *testing.F) {
	f.Add(create(1, "/a-", sequential))
	f.Add(multi(opCheck, opCreate, opSet, opDelete))
	f.Add(create(1, "/a-", sequential)[:30])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, request []byte) {
		says := created(1, 5, 0)
		_, stream := hear(says)
		stream.Sending(request)
		_, err := readAll(stream)
		whole := len(request) >= 12 &&
			int(int32(binary.BigEndian.Uint32(request))) == len(request)-4 &&
			binary.BigEndian.Uint32(request[4:]) == 1
		if !whole {
			require.ErrorContains(t, err, "(xid 1)")
		} else if err != nil {
			require.ErrorContains(t, err, "the reply to ")
		}
	})
}
