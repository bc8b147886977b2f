package zktest

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// A traffic counts packets either way, and how long answers have taken, in milliseconds:
// of one connection, or of a server since its start.
type traffic struct {
	received, sent     int64
	answered           int64
	least, most, total int64
}

func (t *traffic) answer(took int64) {
	if t.answered == 0 || took < t.least {
		t.least = took
	}
	t.most = max(t.most, took)
	t.total += took
	t.answered++
}

// average is written as Java does it: four decimals at most, and one at least.
func (t *traffic) average() string {
	mean := float64(t.total) / float64(max(t.answered, 1))
	text := strconv.FormatFloat(math.Round(mean*10_000)/10_000, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// A lastAnswer is what a connection's client has been answered last. The xid leaves out
// those of pings and of all else that has a fixed one.
type lastAnswer struct {
	op   opcode
	xid  int32
	zxid int64
	at   time.Duration // since the start of the cluster
	took int64
}

// name is what the real server calls the op (FinalRequestProcessor).
func (l lastAnswer) name() string {
	switch l.op {
	case opPing:
		return "PING"
	case opCreateSession:
		return "SESS"
	case opMulti:
		return "MULT"
	case opMultiRead:
		return "MLTR"
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		return "CREA"
	case opDelete, opDeleteContainer:
		return "DELE"
	case opSetData:
		return "SETD"
	case opSetACL:
		return "SETA"
	case opClose:
		return "CLOS"
	case opSync:
		return "SYNC"
	case opCheck:
		return "CHEC"
	case opExists:
		return "EXIS"
	case opGetData:
		return "GETD"
	case opSetWatches:
		return "SETW"
	case opSetWatches2:
		return "STW2"
	case opAddWatch:
		return "ADDW"
	case opGetACL:
		return "GETA"
	case opGetChildren, opGetChildren2:
		return "GETC"
	case opCheckWatches:
		return "CHKW"
	case opRemoveWatches:
		return "REMW"
	default:
		return "NA"
	}
}

// receivedLocked counts a packet that has arrived.
func (c *conn) receivedLocked() {
	c.heard = time.Now()
	c.traffic.received++
	c.server.traffic.received++
}

// answeredLocked notes that a's answer goes out.
func (c *conn) answeredLocked(a *call) {
	now := time.Now()
	took := now.Sub(a.came).Milliseconds()
	c.traffic.answer(took)
	c.server.traffic.answer(took)
	c.last.op, c.last.zxid, c.last.took = a.req.op, a.zxid, took
	c.last.at = now.Sub(c.server.cluster.began)
	if a.req.xid >= 0 {
		c.last.xid = a.req.xid
	}
}
