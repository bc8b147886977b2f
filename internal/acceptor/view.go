package acceptor

// An answer is one that a client got, or an event.
type answer struct {
	op, path string
	watch    bool
	zxid     int64
	code     int32
	asked    int // at which line
}

// noNode is the code of ZooKeeper's error.
const noNode = -101

// A client is a connection of the model, from one Connect to its Close.
type client struct {
	answers []answer // also those that the process has not taken yet
	asked   map[int32]int
	late    bool // its events come late, so that they prove nothing
	// It does not tell the library of handshakes. If it comes back to the server that it
	// used last, over others that it did not, nobody notices: what was known counts.
	plain bool
	view
}

// A view is what a process knows, by the answers that it has taken.
type view struct {
	taken int
	epoch
	server string // that it is connected to
	used   string // that has answered last
	former epoch  // when it left that

	gone map[string]bool
	// Everybody up to that number has gone, or has left; 0: none.
	mark, markToken int64
}

// An epoch is what counts until the next handshake: lists; znodes that are watched, the
// own one and others; the directory's czxid, watched.
type epoch struct {
	lists []answer
	there map[string]bool
	born  int64
}

func newEpoch() epoch { return epoch{there: map[string]bool{}} }

func newClient() *client {
	return &client{asked: map[int32]int{}, view: view{
		epoch: newEpoch(), gone: map[string]bool{},
	}}
}

// connect begins an epoch.
func (v *view) connect(server string, plain bool) {
	if v.server == v.used {
		v.former = v.epoch
	}
	v.epoch, v.server = newEpoch(), server
	if plain && server == v.used {
		v.epoch = v.former
	}
}

// take takes one answer.
func (c *client) take(a answer, t *tree, lock string) {
	v := &c.view
	v.taken++
	if a.op == "connect" {
		v.connect(a.path, c.plain)
		return
	}
	v.used = v.server
	switch {
	case a.op == "EventNodeDeleted":
		v.gone[a.path] = true
		fallthrough
	case a.op == "EventNodeDataChanged" || a.op == "EventNotWatching":
		delete(v.there, a.path)
		if a.path == lock {
			v.born = 0
		}
	case a.code == noNode && a.path != lock:
		v.gone[a.path] = true
	case a.code != 0:
	case a.op == "getChildren2" || a.op == "getChildren":
		v.lists = append(v.lists, a)
	case a.op == "getData" && a.watch && a.path == lock:
		v.born = t.born(a.zxid)
	case a.op == "getData" && a.watch:
		v.there[a.path] = true
	case a.op == "delete":
		v.gone[a.path] = true
	}
}

// leaves takes note that a holder has left by itself.
func (v *view) leaves(z *znode) {
	if z.made > v.markToken {
		v.mark, v.markToken = z.number, z.made
	}
}

// A source is what a grant rests on.
type source int

const (
	unknown  source = iota
	byEvents        // of another process, and proven to have been there then
	byHandOver
)

// decides tells by what z can be granted the lock.
func (c *client) decides(z *znode, t *tree) source {
	switch {
	case c.gone[z.path]:
		return unknown
	case c.byLists(z, t, false):
		return byEvents
	case c.late:
		return unknown
	case c.there[z.path] && c.byLists(z, t, true), c.byNumber(z, t):
		return byHandOver
	}
	return unknown
}

// byLists looks for a list that shows z, and that nobody stood ahead who had not handed
// over before it was asked for; or, if what came later counts, not yet.
func (c *client) byLists(z *znode, t *tree, later bool) bool {
	for _, l := range c.lists {
		if z.isIn(l.zxid) && c.isClear(z, l, t, later) {
			return true
		}
	}
	return false
}

func (c *client) isClear(z *znode, l answer, t *tree, later bool) bool {
	for _, a := range t.ahead(z, l.zxid) {
		switch {
		case later && c.gone[a.path]:
		case !a.handsOverTo(z), !later && !a.assumed && a.leftIn > l.asked:
			return false
		}
	}
	return true
}

// byNumber tells whether all since the last who left with nobody ahead have left, too,
// and the directory is still the same.
func (c *client) byNumber(z *znode, t *tree) bool {
	if c.mark == 0 && c.markToken == 0 || c.born == 0 || c.markToken < c.born ||
		z.made < c.born || z.number <= c.mark {
		return false
	}
	for _, a := range t.znodes {
		between := a.made > c.born && a.number > c.mark && a.number < z.number
		if between && !a.handsOverTo(z) {
			return false
		}
	}
	return true
}

// handsOverTo tells whether a has left, or is assumed to have, and whoever stands behind
// it in its session need not wait for the end of its znode.
func (a *znode) handsOverTo(z *znode) bool {
	return a.client == z.client && a.session == z.session &&
		(a.state == left || a.assumed)
}
