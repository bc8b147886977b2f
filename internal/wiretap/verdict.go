package wiretap

// A Verdict says what becomes of a packet. The zero Verdict is [Pass].
type Verdict struct {
	fate    fate
	code    int32
	release <-chan struct{}
}

type fate int

const (
	pass fate = iota
	hold
	drop
	cut
	passAndCut
	answer
	answerAndCut
)

var (
	// Pass hands the packet on.
	Pass = Verdict{fate: pass}

	// Drop swallows the packet; the connection stays.
	Drop = Verdict{fate: drop}

	// Cut swallows the packet and closes the connection. For a request: the server never
	// saw it. For a reply: the server has done it, and also what it was sent behind it.
	Cut = Verdict{fate: cut}

	// PassAndCut hands a reply on, then closes the connection. A request goes to the
	// server, none behind it does, the client gets nothing from then on, and the
	// connection closes as soon as the server has answered, so that the request is
	// certainly done by then. A server that never answers leaves it open and silent.
	PassAndCut = Verdict{fate: passAndCut}
)

// Hold keeps the packet back until release is closed, then passes it. The packets behind
// it, in this direction of this connection, wait too (of requests that includes the
// pings).
func Hold(release <-chan struct{}) Verdict {
	return Verdict{fate: hold, release: release}
}

// Answer gives the client a reply with this error code: in place of the packet if that is
// a reply, and if it is a request, which the server then does not get, in its turn behind
// the replies that are still due. A connect is answered, whatever the code, as for a
// session that has expired, and the connection closes: so a client can be told that its
// session is over while the server still has it. An event has no answer; it is dropped.
func Answer(code int32) Verdict { return Verdict{fate: answer, code: code} }

// AnswerAndCut is [Answer], then the connection closes, and no request behind this one
// reaches the server. So do servers answer an operation that they do not know (code -6).
func AnswerAndCut(code int32) Verdict { return Verdict{fate: answerAndCut, code: code} }

// OnRequest sets the hook that judges the requests on their way to the server, pings and
// connects included; nil passes them all. It replaces the former hook.
//
// A hook is called for one packet after the other of a connection, in order and at the
// moment at which the packet would arrive (behind a [Tap.Delay] and a partition); the
// connections of several clients call it concurrently. It may use the tap and may block:
// the packets behind then wait, and the connection's goroutine does until it returns,
// also if the connection ends. A [Hold] has no such strings attached.
func (t *Tap) OnRequest(f func(request Packet) Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onRequest = f
}

// OnReply sets the hook that judges what comes from the server, as [Tap.OnRequest] says.
// request is what the reply answers, the zero Packet for an event. A forged answer passes
// here too.
func (t *Tap) OnReply(f func(request, reply Packet) Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onReply = f
}

// NthRequest gives v to the nth request with this operation, counted from 1 at this call;
// the hook is not asked for it. The channel is closed once v is carried out, or for a
// Hold once the packet is held; it stays open if the connection ends before.
//
// Several such rules may wait for the same operation: a packet that one of them takes is
// not counted by those set later.
func (t *Tap) NthRequest(op Op, n int, v Verdict) <-chan struct{} {
	return t.addRule(toServer, op, n, v)
}

// NthReply gives v to the nth reply to this operation, or to the nth watch event for op
// [Event], as [Tap.NthRequest] does.
func (t *Tap) NthReply(op Op, n int, v Verdict) <-chan struct{} {
	return t.addRule(toClient, op, n, v)
}

// LoseRequest loses the nth request with this operation with its connection: the server
// never sees it.
func (t *Tap) LoseRequest(op Op, n int) <-chan struct{} {
	return t.NthRequest(op, n, Cut)
}

// LoseReply loses the reply to the nth request with this operation with its connection:
// when the channel is closed, the server has done what was asked, and nothing that was
// sent behind it.
func (t *Tap) LoseReply(op Op, n int) <-chan struct{} {
	return t.NthRequest(op, n, PassAndCut)
}

// rule is one use of NthRequest or NthReply.
type rule struct {
	op      Op
	left    int // packets until the one that is meant, itself included
	verdict Verdict
	done    chan struct{} // closed by whoever carries the verdict out
}

func (t *Tap) addRule(d direction, op Op, n int, v Verdict) <-chan struct{} {
	if n < 1 {
		panic("wiretap: packets are counted from 1")
	}
	r := &rule{op: op, left: n, verdict: v, done: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rules[d] = append(t.rules[d], r)
	return r.done
}

// sentence is a verdict and what to call once it is carried out.
type sentence struct {
	Verdict
	done func()
}

// judge asks the rules, then the hook. p is the packet that travels in direction d,
// request the one it answers, if any.
func (t *Tap) judge(d direction, request, p Packet) sentence {
	t.mu.Lock()
	r := t.takeRuleLocked(d, p.Op)
	onRequest, onReply := t.onRequest, t.onReply
	t.mu.Unlock()
	s := sentence{done: func() {}}
	switch {
	case r != nil:
		s.Verdict, s.done = r.verdict, func() { close(r.done) }
	case d == toServer && onRequest != nil:
		s.Verdict = onRequest(p)
	case d == toClient && onReply != nil:
		s.Verdict = onReply(request, p)
	}
	return s
}

// takeRuleLocked counts one packet and returns the rule that is meant for it, or nil.
func (t *Tap) takeRuleLocked(d direction, op Op) *rule {
	for i, r := range t.rules[d] {
		if r.op != op {
			continue
		}
		if r.left--; r.left == 0 {
			t.rules[d] = append(t.rules[d][:i:i], t.rules[d][i+1:]...)
			return r
		}
	}
	return nil
}
