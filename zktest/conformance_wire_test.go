package zktest_test

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/digestmd5"
)

// A raw is a role that writes its packets by itself: for what go-zookeeper's client does
// not send, or refuses to.
type raw struct {
	p       *player
	name    string
	conn    net.Conn
	session int64 // 0 as long as the handshake is not done
	// It has sent what need not be a packet, into which no other one may come.
	mute   bool
	xid    int32
	events []string
}

// A form says how a request and its answer are laid out, a letter for each field:
//
//	p path  b bytes  a ACL  c create flags and ACL  i int32  l int64  z bool  v paths  q zxid  s string  S Stat  t token  w identities
type form struct {
	opcode  int32
	in, out string
}

const (
	opPing      = 11
	opMulti     = 14
	opReconfig  = 16
	opMultiRead = 22
	xidOfPing   = -2
)

var forms = map[string]form{
	"create":          {1, "pbc", "s"},
	"delete":          {2, "pi", ""},
	"exists":          {3, "pz", "S"},
	"getData":         {4, "pz", "bS"},
	"setData":         {5, "pbi", "S"},
	"getACL":          {6, "p", "aS"},
	"setACL":          {7, "pai", "S"},
	"getChildren":     {8, "pz", "v"},
	"sync":            {9, "p", "s"},
	"getChildren2":    {12, "pz", "vS"},
	"check":           {13, "pi", ""},
	"create2":         {15, "pbc", "sS"},
	"reconfig":        {16, "sssl", "bS"},
	"createContainer": {19, "pbc", "sS"},
	"createTTL":       {21, "pbcl", "sS"},
	"auth":            {100, "isb", ""},
	"sasl":            {102, "b", "t"},
	"getEphemerals":   {103, "p", "v"},
	"countChildren":   {104, "p", "i"},
	"whoAmI":          {107, "", "w"},
	"checkWatches":    {17, "pi", ""},
	"removeWatches":   {18, "pi", ""},
	"setWatches":      {opSetWatches, "qvvv", ""},
	"setWatches2":     {105, "qvvvvv", ""},
	"addWatch":        {106, "pi", "i"},
	"closeSession":    {opCloseSession, "", ""},
}

func (r *raw) do(s step) string {
	a := &arguments{base: r.p.base, left: s.args}
	switch s.verb {
	case "connect":
		return r.connect(a)
	case "bytes":
		return r.bytes(a.next())
	case "read":
		return r.read()
	}
	if r.conn == nil {
		if connected := r.connect(&arguments{}); r.session == 0 {
			return connected
		}
	}
	switch s.verb {
	case "multi":
		return r.ask(opMulti, r.encodeMulti(a), r.multiResult)
	case "multiRead":
		return r.ask(opMultiRead, r.encodeMulti(a), r.multiResult)
	case "together":
		return r.together(a)
	case "login":
		return r.login(a.next(), a.next())
	case "request":
		return r.request(int32(a.int()), unhex(a.or("")))
	}
	if s.verb == "closeSession" {
		delete(r.p.live, r.session)
	}
	f := formOf(s.verb)
	return r.ask(
		f.opcode, r.encode(f.in, a), func(b *buffer) string { return r.decode(f.out, b) },
	)
}

// login goes through an exchange of SASL with DIGEST-MD5.
func (r *raw) login(user, password string) string {
	login := digestmd5.Client{
		User: user, Password: password, URI: "zookeeper/zk-sasl-md5", Nonce: "mine",
	}
	var challenge []byte
	say := func(token []byte) string {
		var b buffer
		b.bytes(token)
		return r.ask(forms["sasl"].opcode, b.left, func(b *buffer) string {
			challenge = b.getBytes()
			return ""
		})
	}
	first := say([]byte{})
	response, err := login.Answer(challenge)
	if err != nil {
		return first + ", " + err.Error()
	}
	second := say(response)
	return fmt.Sprint(first, ", ", second, ", ", login.Confirm(challenge))
}

// request sends a body as it stands. An answer is read as that of the form with the same
// opcode, if there is one.
func (r *raw) request(opcode int32, body []byte) string {
	for _, f := range forms {
		if f.opcode == opcode {
			return r.ask(
				opcode, body, func(b *buffer) string { return r.decode(f.out, b) },
			)
		}
	}
	return r.ask(opcode, body, r.rest)
}

// connect shakes hands. Its options are timeout=1000, zxid=5 (what the client has seen),
// as=c0 (in whose session), id=1 and password=x (in that session, or with that password,
// instead), readonly, and old (without a word on that, as old clients).
func (r *raw) connect(a *arguments) string {
	var g grant
	var zxid int64
	timeout, tail := usual.Milliseconds(), []byte{0}
	for a.more() {
		option := a.next()
		key, value, _ := strings.Cut(option, "=")
		number := &arguments{left: []string{value}}
		switch key {
		case "timeout":
			timeout = number.int()
		case "zxid":
			zxid = r.p.zero + number.int()
		case "as":
			g = r.p.latest(value)
		case "id":
			g.id = number.int()
		case "password":
			g.password = bytesOf(value)
		case "old":
			tail = nil
		case "readonly":
			tail = []byte{1}
		default:
			panic("BUG: no such option: " + option)
		}
	}
	got, readOnly, err := r.shake(g, timeout, zxid, tail)
	if err != nil {
		return r.lost(err)
	}
	if got.id == 0 {
		return fmt.Sprintf(
			"refused: timeout %d, password %x%s", got.timeout, got.password, readOnly,
		)
	}
	return fmt.Sprintf(
		"session %s of %d ms, %d bytes of password%s", r.p.granted(r.name, got),
		got.timeout, len(got.password), readOnly,
	)
}

func (r *raw) shake(g grant, timeout, zxid int64, tail []byte) (grant, string, error) {
	r.end()
	conn, err := r.p.dial()
	if err != nil {
		return grant{}, "", err
	}
	r.conn = conn
	var b buffer
	b.int32(0)
	b.int64(zxid)
	b.int32(int32(timeout))
	b.int64(g.id)
	b.bytes(g.password)
	b.left = append(b.left, tail...)
	if err := r.write(b.left); err != nil {
		return grant{}, "", err
	}
	frame, err := r.frame()
	if err != nil {
		return grant{}, "", err
	}
	if b := (&buffer{left: frame}); len(frame) == 16 { // the head of an answer
		b.getInt32()
		zxid := b.getInt64()
		return grant{}, fmt.Sprintf(
			", but %s at %s", codes(b.getInt32()), r.p.zxid(zxid),
		), nil
	}
	got := readGrant(frame)
	r.session = got.id
	return got, fmt.Sprintf(", then %x", frame[20+len(got.password):]), nil
}

// takeOver connects to a session that another connection has, and closes it. A session
// that is no more is closed already.
func (r *raw) takeOver(g grant) error {
	defer r.end()
	got, _, err := r.shake(g, usual.Milliseconds(), 0, []byte{0})
	if err == nil && got.id != 0 {
		r.xid++
		if err = r.write(packet(r.xid, opCloseSession, nil)); err == nil {
			_, err = r.reply(r.xid)
		}
	}
	if err == nil {
		delete(r.p.live, g.id)
	}
	return err
}

func readGrant(frame []byte) grant {
	b := &buffer{left: frame}
	b.getInt32()
	timeout := b.getInt32()
	return grant{timeout: timeout, id: b.getInt64(), password: b.getBytes()}
}

// ask sends a request and writes the answer down.
func (r *raw) ask(opcode int32, body []byte, result func(*buffer) string) string {
	r.xid++
	if err := r.write(packet(r.xid, opcode, body)); err != nil {
		return r.lost(err)
	}
	return r.answer(r.xid, opcode, result)
}

// packet is a request without its length.
func packet(xid, opcode int32, body []byte) []byte {
	var b buffer
	b.int32(xid)
	b.int32(opcode)
	return append(b.left, body...)
}

func (r *raw) answer(xid, opcode int32, result func(*buffer) string) string {
	reply, err := r.reply(xid)
	if err != nil {
		return r.lost(err)
	}
	zxid, code := reply.getInt64(), reply.getInt32()
	answer := fmt.Sprintf("%s at %s", codes(code), r.p.zxid(zxid))
	if code != 0 {
		answer += r.rest(reply)
	} else if fields := result(reply); fields != "" {
		answer += " " + r.p.text(fields)
	}
	if code == codeUnimplemented && opcode != opReconfig || code == codeAuthFailed ||
		opcode == opCloseSession && code == 0 {
		// The server closes the connection, but takes its time.
		answer += ", then " + r.read()
	}
	return answer
}

// together sends the requests between semicolons at once, before it reads the answer to
// the first.
func (r *raw) together(a *arguments) string {
	var frames buffer
	first := r.xid + 1
	requests := cutAll(a.left)
	for _, left := range requests {
		f := formOf(left[0])
		r.xid++
		frames.bytes(packet(
			r.xid, f.opcode, r.encode(f.in, &arguments{base: a.base, left: left[1:]}),
		))
	}
	if _, err := r.conn.Write(frames.left); err != nil {
		return r.lost(err)
	}
	var answers []string
	for i, left := range requests {
		if r.conn == nil {
			break
		}
		f := formOf(left[0])
		answers = append(answers, r.answer(
			first+int32(i), f.opcode,
			func(b *buffer) string { return r.decode(f.out, b) },
		))
	}
	return strings.Join(answers, " | ")
}

func formOf(verb string) form {
	f, ok := forms[verb]
	if !ok {
		panic("BUG: no such request: " + verb)
	}
	return f
}

const (
	codeUnimplemented = -6
	codeAuthFailed    = -115
)

// codes names the most usual error codes.
func codes(code int32) string {
	names := map[int32]string{
		0: "ok", -2: "RuntimeInconsistency", -5: "MarshallingError",
		codeUnimplemented: "Unimplemented", -8: "BadArguments", -101: "NoNode",
		-102: "NoAuth", -103: "BadVersion", -108: "NoChildrenForEphemerals",
		-110: "NodeExists", -111: "NotEmpty",
		-112: "SessionExpired", -114: "InvalidACL", codeAuthFailed: "AuthFailed",
		-118: "SessionMoved", -121: "NoWatcher", -13: "NewConfigNoQuorum",
		-119: "NotReadOnly", -123: "ReconfigDisabled",
	}
	if name, ok := names[code]; ok {
		return name
	}
	return fmt.Sprint(code)
}

func (r *raw) reply(xid int32) (*buffer, error) {
	for {
		frame, err := r.frame()
		if err != nil {
			return nil, err
		}
		b := &buffer{left: frame}
		switch got := b.getInt32(); got {
		case xid:
			return b, nil
		default:
			r.events = append(r.events, r.unasked(got, b))
		}
	}
}

// unasked writes down a packet that answers nothing: an event, that is, if all is well.
func (r *raw) unasked(xid int32, b *buffer) string {
	zxid, code := b.getInt64(), b.getInt32()
	if xid != -1 || len(b.left) < 8 {
		return fmt.Sprintf(
			"packet %d: %s at %s%s", xid, codes(code), r.p.zxid(zxid), r.rest(b),
		)
	}
	kind, state := zk.EventType(b.getInt32()), zk.State(b.getInt32())
	return r.p.text(fmt.Sprintf(
		"%v %s %v at %s %s", kind, b.getBytes(), state, r.p.zxid(zxid), codes(code),
	))
}

func (r *raw) arrived() []string {
	if r.conn != nil && r.session != 0 && !r.mute {
		err := r.write(packet(xidOfPing, opPing, nil))
		if err == nil {
			_, err = r.reply(xidOfPing)
		}
		if err != nil {
			r.events = append(r.events, r.lost(err))
		}
	}
	events := r.events
	r.events = nil
	return events
}

func (r *raw) end() {
	if r.conn != nil {
		r.conn.Close()
	}
	r.conn, r.session, r.mute = nil, 0, false
}

// bytes sends what is no packet at all, or half of one.
func (r *raw) bytes(text string) string {
	if r.conn == nil {
		conn, err := r.p.dial()
		if err != nil {
			return err.Error()
		}
		r.conn = conn
	}
	r.mute = true
	if _, err := r.conn.Write(unhex(text)); err != nil {
		return r.lost(err)
	}
	return "sent"
}

func (r *raw) read() string {
	if r.conn == nil {
		return "no connection"
	}
	frame, err := r.frame()
	if err != nil {
		return r.lost(err)
	}
	b := &buffer{left: frame}
	return r.unasked(b.getInt32(), b)
}

// lost says how the connection ended; both ways of a closed one mean the same.
func (r *raw) lost(err error) string {
	r.end()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "silence"
	}
	return "connection closed"
}

func (r *raw) write(b []byte) error {
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	_, err := r.conn.Write(append(frame, b...))
	return err
}

func (r *raw) frame() ([]byte, error) {
	if err := r.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(r.conn, size[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(r.conn, frame)
	return frame, err
}

func unhex(text string) []byte {
	b, err := hex.DecodeString(text)
	if err != nil {
		panic("BUG: a script's bytes: " + err.Error())
	}
	return b
}
