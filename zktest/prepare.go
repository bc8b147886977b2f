package zktest

import (
	"fmt"
	"strings"
)

// A createMode is what the flags of a create ask for.
type createMode struct{ ephemeral, sequential, container, ttl bool }

var createModes = map[int32]createMode{
	0: {},
	1: {ephemeral: true},
	2: {sequential: true},
	3: {ephemeral: true, sequential: true},
	4: {container: true},
	5: {ttl: true},
	6: {sequential: true, ttl: true},
}

// A judge decides on one request, as PrepRequestProcessor does.
type judge struct {
	tree               *tree
	who                []identity
	session, zxid, now int64
	// What the ops of a multi have done so far; nil for a deleted node.
	changed map[string]*record
}

// A record is what requests that come later are judged by. The root has two, as in the
// real server: one as a parent, one as itself.
type record struct {
	version, aversion, cversion int32
	owner                       int64
	children                    int
	acl                         []acl
}

// prepare judges a write against the leader's newest state and gives the log entry for
// it, an opError if it is refused. Who has the session, and whether it still has it, is
// the caller's to check.
func (t *tree) prepare(r request, who []identity, session, zxid, now int64) txn {
	j := &judge{
		tree: t, who: who, session: session, zxid: zxid, now: now,
		changed: map[string]*record{},
	}
	x, err := j.judge(r)
	if err != codeOK {
		return j.refusal(err)
	}
	return x
}

func (j *judge) txn(op opcode) txn {
	return txn{zxid: j.zxid, time: j.now, session: j.session, op: op}
}

func (j *judge) refusal(err code) txn {
	x := j.txn(opError)
	x.code = err
	return x
}

func (j *judge) judge(r request) (txn, code) {
	switch body := r.body.(type) {
	case malformed:
		return txn{}, codeMarshalling
	case createRequest:
		return j.create(r.op, body)
	case deleteRequest:
		return j.delete(r.op, body)
	case setDataRequest:
		return j.setData(body)
	case setACLRequest:
		return j.setACL(body)
	case checkRequest:
		return j.check(body)
	case multiRequest:
		return j.multi(body)
	case reconfigRequest:
		return j.reconfig(body)
	}
	if r.op == opClose || r.op == opCreateSession {
		return j.txn(r.op), codeOK
	}
	panic(fmt.Sprintf("BUG: prepare op %d, which is no write", r.op))
}

// record is what is known of a node, nil if there is none.
func (j *judge) record(path string) *record {
	if rec, ok := j.changed[path]; ok {
		return rec
	}
	n := j.tree.nodes[path]
	if n == nil {
		return nil
	}
	return &record{
		n.stat.version, n.stat.aversion, n.stat.cversion, n.stat.ephemeralOwner,
		len(n.children), n.acl,
	}
}

// nextVersion wraps around at its limit, also to the -1 that nobody can ask for.
func nextVersion(present, expected int32) (int32, code) {
	if expected != -1 && expected != present {
		return 0, codeBadVersion
	}
	return present + 1, codeOK
}

// create judges in the order of PrepRequestProcessor.pRequest2TxnCreate, which decides
// among several errors.
func (j *judge) create(op opcode, r createRequest) (txn, code) {
	if op == opCreateTTL && !r.hasTTL {
		// In a multi, a create with the flags of a TTL node but without its time.
		return txn{}, codeMarshalling
	}
	mode, ok := createModes[r.flags]
	if !ok {
		return txn{}, codeBadArguments
	}
	if err := j.checkTTL(mode, r); err != codeOK {
		return txn{}, err
	}
	if !strings.Contains(r.path, "/") || strings.Contains(r.path, "\x00") {
		return txn{}, codeBadArguments
	}
	acls, err := j.tree.fixupACL(r.acl, j.who)
	if err != codeOK {
		return txn{}, err
	}
	parentPath, _ := split(r.path)
	parent := j.record(parentPath)
	if parent == nil {
		return txn{}, codeNoNode
	}
	if err := checkACL(parent.acl, permCreate, j.who); err != codeOK {
		return txn{}, err
	}
	path := r.path
	if mode.sequential {
		path += fmt.Sprintf("%010d", parent.cversion)
	}
	if !validPath(path) {
		return txn{}, codeBadArguments
	}
	if j.record(path) != nil {
		return txn{}, codeNodeExists
	}
	if ownerTypeOf(parent.owner) == ownerSession {
		return txn{}, codeNoChildrenForEphemerals
	}
	x := j.txn(op)
	x.path, x.data, x.acl, x.parentVersion = path, r.data, acls, parent.cversion+1
	x.owner = j.owner(op, mode, r.ttl)
	next := *parent
	next.children++
	next.cversion++
	j.changed[parentPath] = &next
	j.changed[path] = &record{owner: x.owner, acl: acls}
	return x, codeOK
}

// checkTTL refuses a time that the flags do not ask for, and flags that lack one.
func (j *judge) checkTTL(mode createMode, r createRequest) code {
	ttl := r.ttl
	if !r.hasTTL {
		ttl = -1
	}
	switch {
	case mode.ttl && (ttl <= 0 || ttl > maxTTL), !mode.ttl && ttl >= 0:
		return codeBadArguments
	case r.hasTTL && ttl < 0:
		// A createTTL without a TTL mode and with a negative time ends the process of a
		// real server; its client gets no answer.
		return codeBadArguments
	}
	return codeOK
}

// owner goes by the op and not by the flags, which may contradict it: a create with the
// flags of a container makes a persistent node, a createContainer with those of an
// ephemeral one a container.
func (j *judge) owner(op opcode, mode createMode, ttl int64) int64 {
	switch {
	case op == opCreateContainer:
		return containerOwner
	case op == opCreateTTL:
		return ttlOwnerMask | ttl
	case mode.ephemeral:
		return j.session
	default:
		return 0
	}
}

// delete is also deleteContainer, which looks at the kind of node instead of at
// permissions and version.
func (j *judge) delete(op opcode, r deleteRequest) (txn, code) {
	if !strings.Contains(r.path, "/") || strings.Contains(r.path, "\x00") ||
		isSpecial(r.path) {
		return txn{}, codeBadArguments
	}
	parentPath, _ := split(r.path)
	parent, rec := j.record(parentPath), j.record(r.path)
	err := j.checkReap(parent, rec)
	if op == opDelete {
		err = j.checkDelete(parent, rec, r.version)
	}
	if err != codeOK {
		return txn{}, err
	}
	next := *parent
	next.children--
	j.changed[parentPath] = &next
	j.changed[r.path] = nil
	x := j.txn(op)
	x.path = r.path
	return x, codeOK
}

func (j *judge) checkDelete(parent, rec *record, version int32) code {
	if parent == nil {
		return codeNoNode
	}
	if err := checkACL(parent.acl, permDelete, j.who); err != codeOK {
		return err
	}
	if rec == nil {
		return codeNoNode
	}
	if _, err := nextVersion(rec.version, version); err != codeOK {
		return err
	}
	if rec.children > 0 {
		return codeNotEmpty
	}
	return codeOK
}

func (j *judge) checkReap(parent, rec *record) code {
	switch {
	case rec == nil || parent == nil:
		return codeNoNode
	case rec.children > 0:
		return codeNotEmpty
	case ownerTypeOf(rec.owner) == ownerSession:
		return codeBadVersion
	default:
		return codeOK
	}
}

// existing is the record of a node that a request writes to or checks.
func (j *judge) existing(path string, perm int32) (*record, code) {
	rec := j.record(path)
	if rec == nil {
		return nil, codeNoNode
	}
	return rec, checkACL(rec.acl, perm, j.who)
}

func (j *judge) setData(r setDataRequest) (txn, code) {
	if !validPath(r.path) {
		return txn{}, codeBadArguments
	}
	rec, err := j.existing(r.path, permWrite)
	if err != codeOK {
		return txn{}, err
	}
	x := j.txn(opSetData)
	x.path, x.data = r.path, r.data
	if x.version, err = nextVersion(rec.version, r.version); err != codeOK {
		return txn{}, err
	}
	next := *rec
	next.version = x.version
	j.changed[r.path] = &next
	return x, codeOK
}

func (j *judge) setACL(r setACLRequest) (txn, code) {
	if !validPath(r.path) {
		return txn{}, codeBadArguments
	}
	acls, err := j.tree.fixupACL(r.acl, j.who)
	if err != codeOK {
		return txn{}, err
	}
	rec, err := j.existing(r.path, permAdmin)
	if err != codeOK {
		return txn{}, err
	}
	x := j.txn(opSetACL)
	x.path, x.acl = r.path, acls
	x.version, err = nextVersion(rec.aversion, r.version)
	return x, err
}

func (j *judge) check(r checkRequest) (txn, code) {
	if !validPath(r.path) {
		return txn{}, codeBadArguments
	}
	rec, err := j.existing(r.path, permRead)
	if err != codeOK {
		return txn{}, err
	}
	_, err = nextVersion(rec.version, r.version)
	x := j.txn(opCheck)
	x.path = r.path
	return x, err
}

// multi judges each op by what those before it have done. The first refusal refuses all:
// the ops before it report success, those behind it an inconsistency, and nothing
// happens. What does not parse has no place in such a list, and fails the request.
func (j *judge) multi(r multiRequest) (txn, code) {
	x := j.txn(opMulti)
	for i, sub := range r.ops {
		done, err := j.judge(sub)
		switch err {
		case codeOK:
			x.ops = append(x.ops, done)
			continue
		case codeMarshalling:
			return txn{}, codeMarshalling
		}
		x.ops = nil
		for k := range r.ops {
			switch {
			case k < i:
				x.ops = append(x.ops, j.refusal(codeOK))
			case k == i:
				x.ops = append(x.ops, j.refusal(err))
			default:
				x.ops = append(x.ops, j.refusal(codeRuntimeInconsistency))
			}
		}
		return x, codeOK
	}
	return x, codeOK
}
