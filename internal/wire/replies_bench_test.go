package wire_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/zkrecipes/recipes/internal/wire"
)

// echo answers each request with the same reply, under the request's xid.
type echo struct {
	reply []byte
	left  []byte
}

func (e *echo) Read(p []byte) (int, error) {
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func (e *echo) answer(request []byte) {
	copy(e.reply[4:8], request[4:8])
	e.left = e.reply
}

// What a request and its reply cost on the way through a Stream, read as zk reads them.
func BenchmarkReply(b *testing.B) {
	children := []any{int32(1000)}
	for i := range 1000 {
		children = append(children, fmt.Sprintf("_c_%036d-lock-%010d", i, i))
	}
	head := []any{int32(0), int64(1), int32(0)}
	stat := make([]byte, 68)
	for _, c := range []struct {
		name string
		op   int32
		body []any
	}{
		{"exists", opExists, []any{stat}},
		{"get", opGet, []any{string(make([]byte, 100)), stat}},
		{"get 1 MiB", opGet, []any{string(make([]byte, 1<<20)), stat}},
		{"1000 children", opChildren2, append(slices.Clone(children), stat)},
	} {
		b.Run(c.name, func(b *testing.B) {
			raw := &echo{}
			stream := wire.NewStream(raw, limit, new(heard))
			buf := make([]byte, 2<<20)
			raw.reply = packet(append(slices.Clone(head), c.body...)...)
			request := packet(int32(0), c.op, "/locks/report", false)
			b.SetBytes(int64(len(raw.reply)))
			b.ReportAllocs()
			xid := uint32(0)
			for b.Loop() {
				xid++
				binary.BigEndian.PutUint32(request[4:], xid)
				stream.Sending(request)
				raw.answer(request)
				if _, err := io.ReadFull(stream, buf[:4]); err != nil {
					b.Fatal(err)
				}
				rest := buf[4:len(raw.reply)]
				if _, err := io.ReadFull(stream, rest); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
