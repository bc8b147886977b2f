package zktest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// A tree is the state that a server has reached by applying the log so far. Trees that
// applied the same log are equal.
type tree struct {
	// The server's authProvider of SASL: without it there is no such scheme.
	sasl bool
	// Likewise that of certificates.
	x509 bool
	// The ensemble, as far as writes are judged by it.
	membership membership
	// Puts sorted children into the order in which a client gets them; nil: sorted.
	shuffle func([]string)

	// The root is there as "/" and as "", the parent in "/a".
	nodes     map[string]*node
	ephemeral map[int64]map[string]struct{} // session to paths
	reapable  map[string]struct{}           // containers and TTL nodes
	quotas    map[string]struct{}           // paths that one is on
}

type node struct {
	data     []byte
	acl      []acl
	children map[string]struct{}
	// stat.cversion is the number of creates under the node, and ephemeralOwner tells
	// containers and TTL nodes by special values. A client sees neither so, and gets
	// dataLength and numChildren from elsewhere.
	stat stat
}

// containerOwner marks a container, ttlOwnerMask with the time in the bits below a TTL
// node, as a server has them with extendedTypesEnabled. Hence no session may have an id
// that begins with ff.
const (
	containerOwner int64 = math.MinInt64
	ttlOwnerMask   int64 = -1 << 56
	maxTTL         int64 = 1<<40 - 1
)

type ownerType int

const (
	ownerVoid ownerType = iota
	ownerSession
	ownerContainer
	ownerTTL
)

func ownerTypeOf(owner int64) ownerType {
	switch {
	case owner == 0:
		return ownerVoid
	case owner == containerOwner:
		return ownerContainer
	case owner&ttlOwnerMask == ttlOwnerMask:
		return ownerTTL
	default:
		return ownerSession
	}
}

// newTree is what a standalone server starts with. On a member of an ensemble
// /zookeeper/config has the configuration for data, see configureLocked.
func newTree() *tree {
	open := []acl{{permAll, identity{"world", "anyone"}}}
	t := &tree{
		nodes:     map[string]*node{},
		ephemeral: map[int64]map[string]struct{}{},
		reapable:  map[string]struct{}{},
		quotas:    map[string]struct{}{},
	}
	for _, path := range []string{
		"/", "/zookeeper", configPath, quotaRoot,
	} {
		t.nodes[path] = &node{data: []byte{}, acl: open, children: map[string]struct{}{}}
	}
	t.nodes[""] = t.nodes["/"]
	t.nodes["/"].children["zookeeper"] = struct{}{}
	t.nodes["/zookeeper"].children["config"] = struct{}{}
	t.nodes["/zookeeper"].children["quota"] = struct{}{}
	config := t.nodes[configPath]
	config.acl = []acl{{permRead, identity{"world", "anyone"}}}
	config.stat.aversion = -1
	return t
}

// isSpecial tells the znodes that cannot be deleted.
func isSpecial(path string) bool {
	return path == "/" || path == "/zookeeper" || path == quotaRoot || path == configPath
}

// split takes a path with a slash apart. The parent of "/a" is "".
func split(path string) (parent, child string) {
	slash := strings.LastIndexByte(path, '/')
	return path[:slash], path[slash+1:]
}

// A txn is one entry of the committed log, and the whole of what applying it depends on.
type txn struct {
	zxid, time int64 // time in milliseconds since the epoch
	session    int64
	op         opcode

	path          string
	data          []byte
	acl           []acl
	owner         int64 // of a create
	parentVersion int32 // of a create: the parent's cversion after it
	version       int32 // of a setData or setACL: the version after it
	code          code  // of an opError
	ops           []txn // of a multi; all are opError in one that was refused
}

// apply carries out what prepare has judged, and gives what the requester is answered and
// the events in the order of DataTree. A write that was refused changes nothing but the
// zxid.
func (t *tree) apply(x txn) (reply, code, []event) {
	switch x.op {
	case opCreate:
		_, events := t.create(x)
		return pathReply{x.path}, codeOK, events
	case opCreate2, opCreateContainer, opCreateTTL:
		s, events := t.create(x)
		return pathStatReply{x.path, s}, codeOK, events
	case opDelete, opDeleteContainer:
		return nil, codeOK, t.delete(x.path, x.zxid)
	case opSetData:
		n := t.mustNode(x, x.path)
		t.charge(x.path, len(x.data)-len(n.data), 0)
		n.data, n.stat.version = x.data, x.version
		n.stat.mzxid, n.stat.mtime = x.zxid, x.time
		return statReply{t.stat(n)}, codeOK, []event{
			{eventNodeDataChanged, x.path, n.acl},
		}
	case opReconfig:
		n := t.mustNode(x, x.path)
		n.data, n.stat.version = x.data, x.version
		n.stat.mzxid, n.stat.mtime = x.zxid, x.time
		return dataReply{n.data, t.stat(n)}, codeOK, []event{
			{eventNodeDataChanged, x.path, n.acl},
		}
	case opSetACL:
		n := t.mustNode(x, x.path)
		n.acl, n.stat.aversion = x.acl, x.version
		return statReply{t.stat(n)}, codeOK, nil
	case opClose:
		return nil, codeOK, t.closeSession(x)
	case opMulti:
		return t.applyMulti(x)
	case opError:
		return nil, x.code, nil
	case opCheck, opCreateSession:
		// A check outside a multi has no answer at the real server: its process ends in
		// the attempt.
		return nil, codeOK, nil
	default:
		panic(fmt.Sprintf("BUG: op %d in the log", x.op))
	}
}

// applyMulti answers codeOK for a multi that was refused, too: the results tell.
func (t *tree) applyMulti(x txn) (reply, code, []event) {
	var all multiReply
	var events []event
	for _, sub := range x.ops {
		body, err, more := t.apply(sub)
		result := multiResult{op: sub.op, code: err, body: body}
		if _, ok := body.(pathStatReply); ok {
			result.op = opCreate2
		}
		all.results = append(all.results, result)
		events = append(events, more...)
	}
	return all, codeOK, events
}

func (t *tree) mustNode(x txn, path string) *node {
	n := t.nodes[path]
	if n == nil {
		panic(fmt.Sprintf("BUG: apply op %d of zxid %x: no node %q: "+
			"it was prepared against another state", x.op, x.zxid, path))
	}
	return n
}

func (t *tree) create(x txn) (stat, []event) {
	parentPath, name := split(x.path)
	parent := t.mustNode(x, parentPath)
	// Since ZOOKEEPER-3249 the counter does not go back, so it stays where it is at its
	// limit, and pzxid with it.
	if x.parentVersion > parent.stat.cversion {
		parent.stat.cversion, parent.stat.pzxid = x.parentVersion, x.zxid
	}
	parent.children[name] = struct{}{}
	n := &node{data: x.data, acl: x.acl, children: map[string]struct{}{}, stat: stat{
		czxid: x.zxid, mzxid: x.zxid, pzxid: x.zxid, ctime: x.time, mtime: x.time,
		ephemeralOwner: x.owner,
	}}
	t.nodes[x.path] = n
	switch ownerTypeOf(x.owner) {
	case ownerContainer, ownerTTL:
		t.reapable[x.path] = struct{}{}
	case ownerSession:
		if t.ephemeral[x.owner] == nil {
			t.ephemeral[x.owner] = map[string]struct{}{}
		}
		t.ephemeral[x.owner][x.path] = struct{}{}
	case ownerVoid:
	}
	t.quotaCreated(x.path)
	return t.stat(n), []event{
		{eventNodeCreated, x.path, n.acl},
		{eventNodeChildrenChanged, watchedAs(parentPath), parent.acl},
	}
}

func (t *tree) delete(path string, zxid int64) []event {
	parentPath, name := split(path)
	n, parent := t.nodes[path], t.nodes[parentPath]
	if n == nil || parent == nil {
		panic(fmt.Sprintf("BUG: apply delete of zxid %x: no node %q: "+
			"it was prepared against another state", zxid, path))
	}
	delete(parent.children, name)
	parent.stat.pzxid = max(parent.stat.pzxid, zxid)
	delete(t.nodes, path)
	delete(t.reapable, path)
	owner := n.stat.ephemeralOwner
	delete(t.ephemeral[owner], path)
	if len(t.ephemeral[owner]) == 0 {
		delete(t.ephemeral, owner)
	}
	t.quotaDeleted(path, len(n.data))
	return []event{
		{eventNodeDeleted, path, n.acl},
		{eventNodeChildrenChanged, watchedAs(parentPath), parent.acl},
	}
}

func (t *tree) closeSession(x txn) []event {
	var events []event
	for _, path := range t.ephemerals(x.session) {
		events = append(events, t.delete(path, x.zxid)...)
	}
	return events
}

// watchedAs is the name under which a parent is watched: the root has two.
func watchedAs(parent string) string {
	if parent == "" {
		return "/"
	}
	return parent
}

// stat is what a client gets to see of a node's.
func (t *tree) stat(n *node) stat {
	s := n.stat
	s.dataLength, s.numChildren = int32(len(n.data)), int32(len(n.children))
	// Clients count deletes as well, and there was one for each create but for the
	// children that are left.
	s.cversion = 2*s.cversion - s.numChildren
	if ownerTypeOf(s.ephemeralOwner) != ownerSession {
		s.ephemeralOwner = 0
	}
	return s
}

// ephemerals are the znodes of a session, sorted.
func (t *tree) ephemerals(session int64) []string {
	return slices.Sorted(maps.Keys(t.ephemeral[session]))
}

// containers are the znodes for the leader to delete at now, in milliseconds since the
// epoch, by opDeleteContainer: empty containers that had a child, and TTL nodes without
// children that have not been written for their time. They are sorted.
func (t *tree) containers(now int64) []string {
	var due []string
	for path := range t.reapable {
		n := t.nodes[path]
		switch s := n.stat; {
		case len(n.children) > 0:
		case s.ephemeralOwner == containerOwner && s.cversion > 0,
			ownerTypeOf(s.ephemeralOwner) == ownerTTL &&
				now-s.mtime > s.ephemeralOwner&maxTTL:
			due = append(due, path)
		}
	}
	slices.Sort(due)
	return due
}

// setSequence makes n the number of the next sequential znode under path.
func (t *tree) setSequence(path string, n int32) code {
	parent := t.nodes[path]
	if parent == nil {
		return codeNoNode
	}
	parent.stat.cversion = n
	return codeOK
}
