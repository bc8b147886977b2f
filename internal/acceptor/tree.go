package acceptor

import (
	"strconv"
	"strings"
	"time"
)

// A state is what the owner of a znode is about.
type state int

const (
	waiting state = iota
	held
	left // it has handed over: the znode excludes nobody of its connection any more
	lost // it was held, and the loss is told
)

// A znode is one in the queue, and its owner.
type znode struct {
	path       string
	number     int64
	session    int64
	client     int
	made, gone int64 // zxids; 0: it is there

	state   state
	leftIn  int // at which line; 0 of a waiter, of whom it is not known
	goneIn  int
	told    time.Duration
	margin  time.Duration
	removed bool // somebody whose it is not sets out to delete it
	assumed bool // to have given up, though nothing has shown that yet
}

// A tree is the lock's directory, with all that was ever in it.
type tree struct {
	znodes []*znode // in the order of their creates
	byPath map[string]*znode
	births []int64 // the directory's czxids
}

// make takes the create of a znode in the queue.
func (t *tree) make(path string, zxid, session int64, client int) {
	digits := path[strings.LastIndexByte(path, '-')+1:]
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return // it is none of the queue
	}
	z := &znode{path: path, number: number, session: session, client: client, made: zxid}
	t.znodes = append(t.znodes, z)
	t.byPath[path] = z
}

// born is the czxid that a read of the directory has shown.
func (t *tree) born(zxid int64) (czxid int64) {
	for _, b := range t.births {
		if b <= zxid {
			czxid = b
		}
	}
	return czxid
}

// isIn tells whether a server that had applied so much had the znode.
func (z *znode) isIn(zxid int64) bool {
	return z.made <= zxid && (z.gone == 0 || zxid < z.gone)
}

// ahead returns who stood ahead of z at a place in the servers' order.
func (t *tree) ahead(z *znode, zxid int64) (ahead []*znode) {
	for _, a := range t.znodes {
		if a != z && a.made < z.made && a.isIn(zxid) {
			ahead = append(ahead, a)
		}
	}
	return ahead
}

// hadTurn tells whether there was a moment at which z was there, and nobody ahead but
// those who had handed over. Nobody joins ahead of another: if there was one, the last at
// which z was there is one.
func (t *tree) hadTurn(z *znode, now int) bool {
	last, until := int64(1<<62), now
	if z.gone != 0 {
		last, until = z.gone-1, z.goneIn
	}
	for _, a := range t.ahead(z, last) {
		if !a.assumed && (a.state != left || a.leftIn > until) {
			return false
		}
	}
	return true
}
