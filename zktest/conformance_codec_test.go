package zktest_test

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

func (r *raw) encode(fields string, a *arguments) []byte {
	var b buffer
	for _, field := range fields {
		switch field {
		case 'p':
			if token := a.next(); token == "null" {
				b.bytes(nil)
			} else {
				b.bytes([]byte(absolute(a.base, token)))
			}
		case 'b':
			b.bytes(a.data())
		case 's':
			b.bytes(bytesOf(a.next()))
		case 'a':
			b.acl(a.acl())
		case 'c': // on the wire the other way round
			flags := int32(a.intOr(zk.FlagPersistent))
			b.acl(a.acl())
			b.int32(flags)
		case 'i':
			b.int32(int32(a.int()))
		case 'l':
			b.int64(a.int())
		case 'q':
			b.int64(r.p.zero + a.int())
		case 'z':
			b.bool(a.or("no") == "watch")
		case 'v':
			paths := a.paths()
			b.int32(int32(len(paths)))
			for _, path := range paths {
				b.bytes([]byte(path))
			}
		}
	}
	if a.more() {
		panic("BUG: a script's step has too many arguments: " + strings.Join(a.left, " "))
	}
	return b.left
}

// encodeMulti takes operations between semicolons, as client.multi does, each by the name
// of its form.
func (r *raw) encodeMulti(a *arguments) []byte {
	var b buffer
	for _, left := range cutAll(a.left) {
		f := formOf(left[0])
		b.multiHeader(f.opcode, false)
		b.left = append(
			b.left, r.encode(f.in, &arguments{base: a.base, left: left[1:]})...,
		)
	}
	b.multiHeader(-1, true)
	return b.left
}

func (r *raw) multiResult(b *buffer) string {
	outs := map[int32]string{-1: "i"}
	for _, f := range forms {
		outs[f.opcode] = f.out
	}
	var results []string
	for len(b.left) >= 9 {
		opcode, done, code := b.getInt32(), b.getByte() != 0, b.getInt32()
		if done {
			return strings.Join(results, " | ") + r.rest(b)
		}
		out, known := outs[opcode]
		if !known {
			break
		}
		results = append(results, strings.TrimSpace(
			fmt.Sprintf("%d %s %s", opcode, codes(code), r.fields(out, b)),
		))
	}
	return strings.Join(results, " | ") + " and no end:" + r.rest(b)
}

// anyNonce is what is another one in each challenge.
var anyNonce = regexp.MustCompile(`nonce="[^"]+"`)

// What a configuration has that is each ensemble's own.
var (
	anyPeer    = regexp.MustCompile(`(?m)^(server\.\d+=)[^:]+:\d+:\d+:`)
	anyVersion = regexp.MustCompile(`(?m)^version=([0-9a-f]+)$`)
)

// configuration takes addresses and zxids out of the data of /zookeeper/config, and
// leaves all other data alone.
func (r *raw) configuration(data []byte) []byte {
	if !anyVersion.Match(data) {
		return data
	}
	data = anyPeer.ReplaceAll(data, []byte("${1}@:"))
	return anyVersion.ReplaceAllFunc(data, func(line []byte) []byte {
		text := strings.TrimPrefix(string(line), "version=")
		zxid, err := strconv.ParseInt(text, 16, 64)
		if err != nil {
			return line
		}
		return []byte("version=" + r.p.zxid(zxid))
	})
}

func (r *raw) decode(fields string, b *buffer) string {
	return r.fields(fields, b) + r.rest(b)
}

func (r *raw) fields(fields string, b *buffer) string {
	var all []string
	for _, field := range fields {
		if b.short {
			return strings.Join(append(all, "cut off"), " ")
		}
		switch field {
		case 'b', 's':
			all = append(all, text(r.configuration(b.getBytes())))
		case 'w':
			all = append(all, list(b.getIdentities()))
		case 't':
			all = append(all, text(anyNonce.ReplaceAll(b.getBytes(), []byte("nonce=any"))))
		case 'i':
			all = append(all, fmt.Sprint(b.getInt32()))
		case 'a':
			all = append(all, acls(b.getACL()))
		case 'v':
			all = append(all, list(b.getStrings()))
		case 'S':
			all = append(all, r.p.stat(b.getStat()))
		}
	}
	return strings.Join(all, " ")
}

// rest writes down what an answer has beyond what was expected.
func (*raw) rest(b *buffer) string {
	if len(b.left) == 0 {
		return ""
	}
	return fmt.Sprintf(" and %x", b.left)
}

// A buffer is a packet to be written or read, in the encoding of ZooKeeper's jute.
type buffer struct {
	left  []byte
	short bool // something was to be read that is not there
}

func (b *buffer) int32(n int32) {
	b.left = binary.BigEndian.AppendUint32(b.left, uint32(n))
}

func (b *buffer) int64(n int64) {
	b.left = binary.BigEndian.AppendUint64(b.left, uint64(n))
}

func (b *buffer) bool(is bool) {
	if is {
		b.left = append(b.left, 1)
	} else {
		b.left = append(b.left, 0)
	}
}

func (b *buffer) bytes(data []byte) {
	if data == nil {
		b.int32(-1)
		return
	}
	b.int32(int32(len(data)))
	b.left = append(b.left, data...)
}

func (b *buffer) acl(all []zk.ACL) {
	if all == nil {
		b.int32(-1)
		return
	}
	b.int32(int32(len(all)))
	for _, a := range all {
		b.int32(a.Perms)
		b.bytes([]byte(a.Scheme))
		b.bytes([]byte(a.ID))
	}
}

func (b *buffer) multiHeader(opcode int32, done bool) {
	b.int32(opcode)
	b.bool(done)
	b.int32(-1)
}

// take returns the next n bytes, zeros where there are none.
func (b *buffer) take(n int) []byte {
	if n > len(b.left) {
		b.short, b.left = true, nil
		return make([]byte, min(n, 16))
	}
	taken := b.left[:n]
	b.left = b.left[n:]
	return taken
}

func (b *buffer) getByte() byte   { return b.take(1)[0] }
func (b *buffer) getInt32() int32 { return int32(binary.BigEndian.Uint32(b.take(4))) }
func (b *buffer) getInt64() int64 { return int64(binary.BigEndian.Uint64(b.take(8))) }

func (b *buffer) getBytes() []byte {
	n := b.getInt32()
	if n < 0 {
		return nil
	}
	return b.take(int(n))
}

func (b *buffer) getStrings() []string {
	var all []string
	for n := b.getInt32(); n > 0 && !b.short; n-- {
		all = append(all, string(b.getBytes()))
	}
	return all
}

func (b *buffer) getIdentities() []string {
	var all []string
	for n := b.getInt32(); n > 0 && !b.short; n-- {
		all = append(all, fmt.Sprintf("%s/%s", b.getBytes(), b.getBytes()))
	}
	return all
}

func (b *buffer) getACL() []zk.ACL {
	var all []zk.ACL
	for n := b.getInt32(); n > 0 && !b.short; n-- {
		all = append(all, zk.ACL{
			Perms: b.getInt32(), Scheme: string(b.getBytes()), ID: string(b.getBytes()),
		})
	}
	return all
}

func (b *buffer) getStat() *zk.Stat {
	return &zk.Stat{
		Czxid: b.getInt64(), Mzxid: b.getInt64(), Ctime: b.getInt64(),
		Mtime:   b.getInt64(),
		Version: b.getInt32(), Cversion: b.getInt32(), Aversion: b.getInt32(),
		EphemeralOwner: b.getInt64(), DataLength: b.getInt32(), NumChildren: b.getInt32(),
		Pzxid: b.getInt64(),
	}
}
