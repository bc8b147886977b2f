package wire

import "fmt"

// A body is what is left to check of a reply's. What it says of it names the field; after
// the first that is wrong, it looks at no more.
type body struct {
	rest  []byte
	wrong error
}

// The sizes of what has one, and the least ones of an element of a vector.
const (
	statSize        = 68
	nameLeast       = 4
	aclLeast        = 12
	multiHeaderSize = 9
)

func (b *body) fail(format string, args ...any) {
	b.rest = nil
	if b.wrong == nil {
		b.wrong = fmt.Errorf(format, args...)
	}
}

// skip takes n bytes off, and returns them; nil if there are fewer.
func (b *body) skip(n int, what string) []byte {
	if n > len(b.rest) {
		b.fail("%s: %d bytes where there are %d", what, n, len(b.rest))
		return nil
	}
	head := b.rest[:n]
	b.rest = b.rest[n:]
	return head
}

func (b *body) number(what string) int32 {
	p := b.skip(4, what)
	if p == nil {
		return 0
	}
	return number(p)
}

func (b *body) text(what string) {
	if n := b.number(what); n < 0 {
		b.fail("%s: has the length %d", what, n)
	} else {
		b.skip(int(n), what)
	}
}

// buffer is a text that may be null.
func (b *body) buffer(what string) {
	if n := b.number(what); n < -1 {
		b.fail("%s: has the length %d", what, n)
	} else {
		b.skip(max(int(n), 0), what)
	}
}

func (b *body) stat() { b.skip(statSize, "stat") }

// count returns how many elements, each of some bytes at least, a vector has.
func (b *body) count(least int, what string) int {
	n := int(b.number(what))
	if n < 0 || n > len(b.rest)/least {
		b.fail("%s: %d in %d bytes", what, n, len(b.rest))
		return 0
	}
	return n
}

func (b *body) names() {
	for n := b.count(nameLeast, "names"); n > 0 && b.wrong == nil; n-- {
		b.text("name")
	}
}

func (b *body) acls() {
	for n := b.count(aclLeast, "ACLs"); n > 0 && b.wrong == nil; n-- {
		b.skip(4, "permissions")
		b.text("scheme")
		b.text("id")
	}
}

// event is a watch event. Those of a negative type are zk's own, about the session:
// from outside they would be believed.
func (b *body) event() {
	kind := b.number("type")
	b.skip(4, "state")
	b.text("path")
	if kind < 1 {
		b.fail("is of type %d", kind)
	}
}

func (b *body) multiHeader() (op int32, done bool) {
	p := b.skip(multiHeaderSize, "header of an operation")
	if p == nil {
		return 0, false
	}
	return number(p), p[4] != 0
}

// results are those of a multi: one for each operation, of its kind, or an error. zk
// stops at kinds that it does not know; a server answers the create of a container so.
func (b *body) results(ops []byte) {
	for i := 0; b.wrong == nil; i++ {
		op, done := b.multiHeader()
		switch {
		case b.wrong != nil:
		case done && i < len(ops):
			b.fail("%d results of %d operations", i, len(ops))
		case done:
			return
		case i == len(ops):
			b.fail("more results than operations, of which there are %d", i)
		case op == opError:
			b.skip(4, "error")
		case ops[i] == opCreate && newCreate(op):
			return
		case op != int32(ops[i]):
			b.fail("a result of type %d for an operation of type %d", op, ops[i])
		case op == opCreate:
			b.text("path")
		case op == opSet:
			b.stat()
		}
	}
}

// newCreate reports whether a result is that of a create which zk does not know.
func newCreate(op int32) bool {
	return op == opCreate2 || op == opCreateContainer || op == opCreateTTL
}
