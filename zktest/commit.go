package zktest

import "time"

// A Transaction is a change that is committed: see WithLog.
type Transaction struct {
	Zxid int64
	// OpCreate, OpCreateContainer, OpDelete, OpSet, OpSetACL or OpClose. The end of a
	// session deletes its ephemeral znodes without further transactions.
	Op      Op
	Path    string // of a create: with its number, if it has one
	Session int64  // that ended, or that requested the change; 0: the cluster itself
}

// SlowCommit changes the delay that WithSlowCommit sets. What is under way keeps its own.
func (c *Cluster) SlowCommit(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slowCommit = max(d, 0)
}

// proposeLocked has the leader judge a write and commit what comes of it: also a refusal
// takes a zxid. asked, if not nil, is the call that is answered when the server that took
// it has applied the transaction.
func (c *Cluster) proposeLocked(req request, who []identity, id int64, asked *call) {
	c.zxid++
	x := c.leader.tree.prepare(req, who, id, c.zxid, time.Now().UnixMilli())
	c.commitLocked(x, asked)
}

// refuseLocked commits an error in the place of a write.
func (c *Cluster) refuseLocked(err code, id int64, asked *call) {
	x := c.nextLocked(opError, id)
	x.code = err
	c.commitLocked(x, asked)
}

// nextLocked makes a transaction that needs no judgement.
func (c *Cluster) nextLocked(op opcode, id int64) txn {
	c.zxid++
	return txn{zxid: c.zxid, time: time.Now().UnixMilli(), session: id, op: op}
}

func (c *Cluster) commitLocked(x txn, asked *call) {
	if x.op == opClose {
		delete(c.sessions, x.session)
	}
	c.log.add(x)
	c.showLocked(x)
	if asked != nil {
		asked.conn.server.waiting[x.zxid] = asked
	}
	c.leader.applyLocked(x)
	for _, s := range c.servers {
		if s != c.leader && s.serving && s.epoch == c.epoch {
			s.fromLeader.push(s.delayLocked(), func() { s.applyLocked(x) })
		}
	}
	c.forgetLocked()
}

// showLocked shows a transaction to the function of WithLog.
func (c *Cluster) showLocked(x txn) {
	if c.committed == nil {
		return
	}
	op := Op(x.op)
	switch x.op {
	case opMulti:
		for _, part := range x.ops {
			part.zxid, part.session = x.zxid, x.session
			c.showLocked(part)
		}
		return
	case opCreate, opCreate2, opCreateTTL:
		op = OpCreate
	case opDelete, opDeleteContainer:
		op = OpDelete
	case opCreateContainer, opSetData, opSetACL, opClose:
	default:
		return
	}
	c.committed(Transaction{Zxid: x.zxid, Op: op, Path: x.path, Session: x.session})
}

// reapLocked deletes what ContainerManager would.
func (c *Cluster) reapLocked(now time.Time) {
	for _, path := range c.leader.tree.containers(now.UnixMilli()) {
		c.proposeLocked(
			request{op: opDeleteContainer, body: deleteRequest{path: path, version: -1}},
			nil, 0, nil,
		)
	}
}
