package zktest

import (
	"maps"
	"slices"
	"strings"
)

// permitted is the node at path if one of perms is granted to who.
func (t *tree) permitted(path string, perms int32, who []identity) (*node, code) {
	n := t.nodes[path]
	if n == nil {
		return nil, codeNoNode
	}
	return n, checkACL(n.acl, perms, who)
}

// exists needs no permission.
func (t *tree) exists(path string) (stat, code) {
	if strings.Contains(path, "\x00") {
		return stat{}, codeBadArguments
	}
	n := t.nodes[path]
	if n == nil {
		return stat{}, codeNoNode
	}
	return t.stat(n), codeOK
}

func (t *tree) getData(path string, who []identity) ([]byte, stat, code) {
	n, err := t.permitted(path, permRead, who)
	if err != codeOK {
		return nil, stat{}, err
	}
	return n.data, t.stat(n), codeOK
}

// getChildren sorts what the real server gives in the order of a hash table, unless the
// tree shuffles.
func (t *tree) getChildren(path string, who []identity) ([]string, stat, code) {
	n, err := t.permitted(path, permRead, who)
	if err != codeOK {
		return nil, stat{}, err
	}
	children := slices.Sorted(maps.Keys(n.children))
	if t.shuffle != nil {
		t.shuffle(children)
	}
	return children, t.stat(n), codeOK
}

// countBelow counts the znodes below a path, at any depth.
func (t *tree) countBelow(path string, who []identity) (reply, code) {
	if _, err := t.permitted(path, permRead, who); err != codeOK {
		return nil, err
	}
	prefix := strings.TrimSuffix(path, "/") + "/"
	n := int32(0)
	for other := range t.nodes {
		if other != "/" && strings.HasPrefix(other, prefix) {
			n++
		}
	}
	return countReply{n}, codeOK
}

// ownedBy are the ephemeral znodes of a session whose paths begin with a prefix, in the
// order of a list.
func (t *tree) ownedBy(session int64, prefix string) []string {
	all := t.ephemerals(session)
	if strings.TrimSpace(prefix) != "" && strings.TrimSpace(prefix) != "/" {
		all = slices.DeleteFunc(all, func(path string) bool {
			return !strings.HasPrefix(path, prefix)
		})
	}
	if t.shuffle != nil {
		t.shuffle(all)
	}
	return all
}

// getACL shows the digests only to those who may change them.
func (t *tree) getACL(path string, who []identity) ([]acl, stat, code) {
	n, err := t.permitted(path, permRead|permAdmin, who)
	if err != codeOK {
		return nil, stat{}, err
	}
	acls := slices.Clone(n.acl)
	if checkACL(n.acl, permAdmin, who) != codeOK {
		for i, a := range acls {
			if user, _, ok := strings.Cut(a.id, ":"); ok && a.scheme == "digest" {
				acls[i].id = user + ":x"
			}
		}
	}
	return acls, t.stat(n), codeOK
}

// read answers a request that is no write, and calls watch for the watch that it sets.
func (t *tree) read(
	r request, who []identity, watch func(watchKind, string),
) (reply, code) {
	switch body := r.body.(type) {
	case malformed:
		return nil, codeMarshalling
	case pathRequest:
		return t.readPath(r.op, body, who, watch)
	case getACLRequest:
		acls, s, err := t.getACL(body.path, who)
		return answer(aclReply{acls, s}, err)
	case syncRequest:
		return pathReply(body), codeOK
	case multiRequest:
		return t.multiRead(body, who, watch), codeOK
	default:
		return nil, codeUnimplemented
	}
}

func (t *tree) readPath(
	op opcode, body pathRequest, who []identity, watch func(watchKind, string),
) (r reply, err code) {
	var s stat
	var data []byte
	var children []string
	kind := watchData
	switch op {
	case opExists:
		s, err = t.exists(body.path)
		r = statReply{s}
	case opGetData:
		data, s, err = t.getData(body.path, who)
		r = dataReply{data, s}
	case opGetChildren:
		children, _, err = t.getChildren(body.path, who)
		kind, r = watchChild, childrenReply{children}
	case opCountChildren:
		return t.countBelow(body.path, who)
	default:
		children, s, err = t.getChildren(body.path, who)
		kind, r = watchChild, childrenStatReply{children, s}
	}
	// Only exists watches for what is not there yet.
	if body.watch && (err == codeOK || err == codeNoNode && op == opExists) {
		watch(kind, body.path)
	}
	return answer(r, err)
}

// multiRead answers every op, whatever became of those before it.
func (t *tree) multiRead(
	body multiRequest, who []identity, watch func(watchKind, string),
) multiReply {
	var all multiReply
	for _, sub := range body.ops {
		r, err := t.read(sub, who, watch)
		if err != codeOK {
			sub.op = opError
		}
		all.results = append(all.results, multiResult{op: sub.op, code: err, body: r})
	}
	return all
}

// answer drops the reply to what failed.
func answer(r reply, err code) (reply, code) {
	if err != codeOK {
		return nil, err
	}
	return r, codeOK
}

func (t *tree) countEphemerals() int {
	n := 0
	for _, paths := range t.ephemeral {
		n += len(paths)
	}
	return n
}

// size is that of all paths and data, in bytes (DataTree.approximateDataSize).
func (t *tree) size() int {
	n := 0
	for path, one := range t.nodes {
		n += len(path) + len(one.data)
	}
	return n
}
