package order

import (
	"fmt"
	"maps"
	"slices"
)

// The world of the model is what ZooKeeper's documentation guarantees, and nothing of
// what package order knows: the leader's tree of one directory with its history, and the
// one connection through which our session sees it.

// A leaf is a znode of the queue.
type leaf struct {
	text    string // its name
	seq     int32
	kind    string
	session int64
	czxid   int64
	forged  bool // its number was not given by the server
	nested  bool // a reader with its writer's number
}

// A tree is the directory at one moment. Trees are never changed: they are history.
type tree struct {
	czxid, pzxid int64 // 0: there is no directory
	next         int32 // the number that the next sequential create gets
	leaves       []leaf
}

func (t tree) find(text string) (leaf, bool) {
	for _, l := range t.leaves {
		if l.text == text {
			return l, true
		}
	}
	return leaf{}, false
}

// ahead reports whether a has to be served before b, as serial arithmetic has it. Equal
// numbers, of which one was made by hand or nested, go by the name.
func ahead(a, b leaf) bool {
	if a.seq == b.seq {
		return a.text < b.text
	}
	return int32(uint32(a.seq)-uint32(b.seq)) < 0
}

// firstZxid is the zxid of the first tree of a history.
const firstZxid = 100

// A leader has the history: the tree after each transaction.
type leader struct{ history []tree }

func (l *leader) head() int64             { return firstZxid + int64(len(l.history)) - 1 }
func (l *leader) state(zxid int64) tree   { return l.history[zxid-firstZxid] }
func (l *leader) now() tree               { return l.history[len(l.history)-1] }
func (l *leader) commit(t tree)           { l.history = append(l.history, t) }
func (l *leader) change(edit func(*tree)) { t := l.now(); edit(&t); l.commit(t) }

// leafName is the name of a znode with a number, as ZooKeeper writes it.
func leafName(prefix, kind string, seq int32) string {
	return fmt.Sprintf("%s-%s%010d", prefix, kind, seq)
}

// create adds a leaf with the next number, or with the given one: whoever forges a number
// takes one of the counter all the same. The directory is made if there is none.
func (l *leader) create(prefix, kind string, session int64, forged *int32) leaf {
	if l.now().czxid == 0 {
		zxid := l.head() + 1
		l.change(func(t *tree) { *t = tree{czxid: zxid, pzxid: zxid} })
	}
	made := leaf{kind: kind, session: session, czxid: l.head() + 1, seq: l.now().next}
	if forged != nil {
		made.seq, made.forged = *forged, true
	}
	made.text = leafName(prefix, kind, made.seq)
	l.change(func(t *tree) {
		t.next++
		t.pzxid = made.czxid
		t.leaves = append(slices.Clone(t.leaves), made)
	})
	return made
}

// remove deletes the leaves that match, in one transaction. It reports whether there were
// any.
func (l *leader) remove(match func(leaf) bool) bool {
	if !slices.ContainsFunc(l.now().leaves, match) {
		return false
	}
	zxid := l.head() + 1
	l.change(func(t *tree) {
		t.leaves = slices.DeleteFunc(slices.Clone(t.leaves), match)
		t.pzxid = zxid
	})
	return true
}

// An op is what a request asks for.
type op string

const (
	opCreate    op = "create"
	opDelete    op = "delete"
	opList      op = "list"
	opSync      op = "sync"
	opWatch     op = "watch"     // a read that leaves a watch, if the znode exists
	opRead      op = "read"      // a read that leaves none
	opDirectory op = "directory" // a read of the directory that leaves a watch
)

// A request is on its way, with the answer once it has one.
type request struct {
	op   op
	by   *slot
	life *stake // the slot's own znode then
	name string // of the znode; of a create, what comes before the kind
	kind string // opCreate
	seq  *int32 // opCreate: not sequential

	ask   Stamp
	epoch Epoch // that was read before the request was sent
	mark  int   // which of all questions it was

	lost  bool // the connection went away first: it was done or not
	found bool // the znode exists
	made  leaf // opCreate, opWatch, opRead: the znode
	dir   tree // opList, opDirectory
}

// A message is what comes from the server: an answer, or an event of a name.
type message struct {
	answer *request
	gone   string
	zxid   int64
	behind int // of an event with a way of its own: how many messages came before it
}

// An asked is a stamp, and which of all it was.
type asked struct {
	q    Stamp
	mark int
}

// An event has come to the client, and is not reported yet.
type event struct {
	name   string
	asks   []asked // of those who waited for it
	polled bool
}

// theDirectory is the name for watches on it.
const theDirectory = "/"

// A link is our session's connection.
type link struct {
	l       *leader
	session int64
	late    bool // events have a way of their own, and may come after later answers

	up       bool
	at       int64 // what our server has applied
	seen     int64 // the newest zxid that has come to us
	toServer []*request
	toClient []message
	received int                // how many of them have come to us
	events   []message          // with late: their way
	armed    map[string]bool    // the watches that our server has
	watches  map[string][]asked // those that the client knows of, with who uses them
	zombies  []*request         // what the last server may still do

	inbox []*request // answered: not yet reported
	fired []event    // events that have come: not yet reported
}

// apply lets our server go on to a zxid. It fires the watches on what has gone.
func (k *link) apply(zxid int64) {
	for ; k.at < zxid; k.at++ {
		before, after := k.l.state(k.at), k.l.state(k.at+1)
		for _, l := range before.leaves {
			now, ok := after.find(l.text)
			if k.armed[l.text] && (!ok || now.czxid != l.czxid) {
				k.fire(l.text, k.at+1)
			}
		}
		if before.czxid != after.czxid && k.armed[theDirectory] {
			k.fire(theDirectory, k.at+1)
		}
	}
}

func (k *link) fire(text string, zxid int64) {
	delete(k.armed, text)
	m := message{gone: text, zxid: zxid}
	if k.late {
		m.behind = k.received + len(k.toClient)
		k.events = append(k.events, m)
	} else {
		k.toClient = append(k.toClient, m)
	}
}

// serve lets our server answer the oldest request. Its own writes a session sees at once.
func (k *link) serve() {
	r := k.toServer[0]
	k.toServer = k.toServer[1:]
	if k.write(r) || r.op == opSync {
		k.apply(k.l.head())
	}
	t := k.l.state(k.at)
	switch r.op {
	case opList:
		r.dir = t
	case opDirectory:
		r.dir = t
		if r.found = t.czxid != 0; r.found {
			k.armed[theDirectory] = true
		}
	case opWatch, opRead:
		r.made, r.found = t.find(r.name)
		if r.found && r.op == opWatch {
			k.armed[r.name] = true
		}
	}
	k.toClient = append(k.toClient, message{answer: r, zxid: k.at})
}

// write has the leader do a request if it is one to write.
func (k *link) write(r *request) bool {
	switch r.op {
	case opCreate:
		if r.seq != nil {
			if _, ok := k.l.now().find(leafName(r.name, r.kind, *r.seq)); ok {
				return true // it exists: not made
			}
		}
		r.made = k.l.create(r.name, r.kind, k.session, r.seq)
		r.found = true
	case opDelete:
		r.found = k.l.remove(func(l leaf) bool { return l.text == r.name })
	default:
		return false
	}
	return true
}

// receive takes the next message from the connection.
func (k *link) receive() {
	m := k.toClient[0]
	k.received, k.toClient = k.received+1, k.toClient[1:]
	k.take(m)
}

// eventDue reports whether an event has come: not before what the server had said
// earlier.
func (k *link) eventDue() bool {
	return len(k.events) > 0 && k.events[0].behind <= k.received
}

// receiveEvent takes the next of the late events.
func (k *link) receiveEvent() {
	m := k.events[0]
	k.events = k.events[1:]
	k.take(m)
}

func (k *link) take(m message) {
	k.seen = max(k.seen, m.zxid)
	r := m.answer
	if r == nil {
		k.fired = append(k.fired, event{name: m.gone, asks: k.watches[m.gone]})
		delete(k.watches, m.gone)
		return
	}
	switch {
	case r.op == opWatch && r.found:
		k.watches[r.name] = append(k.watches[r.name], asked{r.ask, r.mark})
	case r.op == opDirectory && r.found:
		k.watches[theDirectory] = []asked{{r.ask, r.mark}}
	}
	k.inbox = append(k.inbox, r)
}

// cut loses the connection: what has come stays, all else has no answer. What is on its
// way may still be done, until the session is at another server.
func (k *link) cut() {
	k.up = false
	k.zombies = nil
	for _, m := range k.toClient {
		if m.answer != nil {
			k.fail(m.answer)
		}
	}
	for _, r := range k.toServer {
		undone := *r
		k.zombies = append(k.zombies, &undone)
		k.fail(r)
	}
	k.received = 0
	k.toServer, k.toClient, k.events = nil, nil, nil
	k.armed = map[string]bool{}
}

func (k *link) fail(r *request) {
	r.lost, r.found, r.made = true, false, leaf{}
	k.inbox = append(k.inbox, r)
}

// zombie lets the old server pass on one more of what it has got.
func (k *link) zombie() {
	k.write(k.zombies[0])
	k.zombies = k.zombies[1:]
}

// join connects to a server that has applied at least what this session has seen. The
// watches are set again before all else, and fire for what has gone since.
func (k *link) join(at int64) {
	k.up, k.at, k.zombies = true, at, nil
	t := k.l.state(at)
	for _, text := range slices.Sorted(maps.Keys(k.watches)) {
		if text == theDirectory {
			if t.czxid == 0 || t.czxid > k.seen {
				k.fire(text, at)
			} else {
				k.armed[text] = true
			}
			continue
		}
		l, ok := t.find(text)
		if !ok || l.czxid > k.seen {
			k.fire(text, at)
		} else {
			k.armed[text] = true
		}
	}
}
