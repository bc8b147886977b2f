package acceptor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A run is the states of the model that agree with the lines so far.
type run struct {
	tree
	lock    string
	clients map[int]*client
	makers  map[string]int // whose client has sent the create, by the path in it
	owned   map[acquisition]*znode
	forced  map[int64]bool // sessions that are ended by force
	closing map[int64]bool // ... by their client, which leaves no margin
	token   int64          // the greatest so far
	line    int
}

// Accept returns an error that says which line is none of the model's, and why.
func Accept(trace []Line) error {
	r := &run{
		tree: tree{byPath: map[string]*znode{}}, clients: map[int]*client{},
		makers: map[string]int{}, owned: map[acquisition]*znode{},
		forced: map[int64]bool{}, closing: map[int64]bool{},
	}
	if at := slices.IndexFunc(trace, isCall); at >= 0 {
		r.lock = trace[at].Path
	}
	for i, l := range trace {
		r.line = i
		if err := r.take(l); err != nil {
			return fmt.Errorf("line %d, at %v: %w: %v", i+1, l.At, err, l)
		}
	}
	return nil
}

func isCall(l Line) bool { return l.Kind == "called" }

func (r *run) take(l Line) error {
	switch l.Kind {
	case "committed":
		return r.commit(l)
	case "sent", "answered", "notified":
		r.talk(l)
	case "queued":
		r.leave(r.owned[l.acquisition()]) // what it had before is lost
		r.owned[l.acquisition()] = r.byPath[l.Node]
	case "granted":
		return r.grant(l)
	case "releasing", "failed":
		r.leave(r.owned[l.acquisition()])
	case "lost":
		r.lose(r.owned[l.acquisition()], l)
	case "expired":
		r.forced[l.Session] = true
	case "closing":
		r.closing[l.Session] = true
	case "removing":
		if z := r.byPath[l.Node]; z != nil {
			z.removed = true
		}
	case "over":
		for _, z := range r.znodes {
			switch {
			case z.gone == 0:
				return fmt.Errorf("%s is left", z.path)
			case z.state == held:
				return fmt.Errorf("the holder of %s was never told", z.path)
			}
		}
	}
	return nil
}

// commit takes a transaction.
func (r *run) commit(l Line) error {
	switch {
	case l.Op == "close":
		return r.end(l)
	case l.Path == r.lock && l.Op == "create":
		r.births = append(r.births, l.Zxid)
	case l.Path == r.lock:
	case l.Op == "create":
		r.make(l.Path, l.Zxid, l.Session, r.makers[l.Path[:len(l.Path)-numberLength]])
	case l.Op == "delete":
		return r.remove(l)
	}
	return nil
}

// numberLength is that of the number in a name.
const numberLength = 10

// remove takes the delete of a znode: its holder has left, or was told of the loss and
// has had the margin, unless it was somebody else's doing.
func (r *run) remove(l Line) error {
	z := r.byPath[l.Path]
	if z == nil || z.gone != 0 {
		return fmt.Errorf("there is no such znode to delete")
	}
	z.gone, z.goneIn = l.Zxid, r.line
	switch {
	case z.removed || r.forced[z.session]:
	case z.state == held:
		return fmt.Errorf("its holder has neither left nor was told of a loss")
	case r.isStopping(z, l):
		return fmt.Errorf("the margin of its hold is not over")
	}
	return nil
}

// end takes the end of a session: by then its holders have been told.
func (r *run) end(l Line) error {
	for _, z := range r.znodes {
		if z.session != l.Session || z.gone != 0 {
			continue
		}
		z.gone, z.goneIn = l.Zxid, r.line
		if z.state == held && !z.removed && !r.forced[z.session] {
			return fmt.Errorf("the holder of %s was not told before", z.path)
		}
	}
	return nil
}

// talk takes what a client sends and gets.
func (r *run) talk(l Line) {
	c := r.clients[l.Client]
	if c == nil {
		c = newClient()
		r.clients[l.Client] = c
	}
	c.late, c.plain = strings.Contains(l.Text, "late"), strings.Contains(l.Text, "plain")
	switch {
	case l.Kind == "sent":
		c.asked[l.Xid] = r.line
		if l.Op == "create" {
			r.makers[l.Path] = l.Client
		}
	case l.Kind == "answered" || !c.late:
		c.answers = append(c.answers, answer{
			op: l.Op, path: l.Path, watch: l.Watch, zxid: l.Zxid,
			code: l.Code, asked: c.asked[l.Xid],
		})
	}
}

// leave takes note that an owner does not hold or want the lock any more. A waiter may
// have given up long before.
func (r *run) leave(z *znode) {
	if z == nil || z.state == left || z.state == lost {
		return
	}
	if z.state == held {
		r.clients[z.client].leaves(z)
		z.leftIn = r.line
	}
	z.state = left
}

// lose takes note that a holder is told of a loss.
func (r *run) lose(z *znode, l Line) {
	if z != nil && z.state == held {
		z.state, z.told = lost, l.At
	}
}

// grant demands that the model grants the lock in one of the states.
func (r *run) grant(l Line) error {
	z := r.byPath[l.Node]
	switch {
	case l.Node == "":
		return nil // lost before anybody could look at it
	case z == nil:
		return fmt.Errorf("nobody has made its znode")
	case z.session != l.Session:
		return fmt.Errorf("its znode is of session %#x", z.session)
	case z.assumed:
		return fmt.Errorf("another was granted that needed this one to give up")
	case z.state != waiting:
		return fmt.Errorf("it does not wait any more")
	}
	for _, a := range r.ahead(z, z.made) {
		ours := a.client == z.client && a.session == z.session
		if ours && a.state == waiting {
			a.assumed = true // also if its znode is gone already
		}
	}
	if err := r.excludes(z, l); err != nil {
		return err
	}
	if err := r.decide(z); err != nil {
		return err
	}
	z.state, z.margin = held, l.Margin
	r.owned[l.acquisition()] = z
	if l.Token != 0 && l.Token <= r.token && !r.excused(z) {
		return fmt.Errorf("its token is not greater than %d", r.token)
	}
	r.token = max(r.token, l.Token)
	return nil
}

// excused tells whether others may be faster than the news of what became of z.
func (r *run) excused(z *znode) bool { return z.removed || r.forced[z.session] }

// isStopping tells whether the holder of z was told of a loss, and has a margin yet.
func (r *run) isStopping(z *znode, l Line) bool {
	return z.state == lost && l.At < z.told+z.margin && !r.closing[z.session]
}

// excludes demands that nobody else holds the lock who is not told of a loss, or has not
// had the margin yet.
func (r *run) excludes(z *znode, l Line) error {
	for _, h := range r.znodes {
		holds := h.state == held || r.isStopping(h, l)
		if h != z && holds && !r.excused(h) && !r.excused(z) {
			return fmt.Errorf("%s is held", h.path)
		}
	}
	return nil
}

// decide demands that it was z's turn at the servers, and that the process could know. It
// looks at as many more answers as it takes.
func (r *run) decide(z *znode) error {
	c := r.clients[z.client]
	if c == nil {
		return fmt.Errorf("its client has asked for nothing")
	}
	by := c.decides(z, &r.tree)
	for by == unknown && c.taken < len(c.answers) {
		c.take(c.answers[c.taken], &r.tree, r.lock)
		by = c.decides(z, &r.tree)
	}
	switch {
	case by == unknown:
		return fmt.Errorf("its process cannot know that it is its turn: %s", c.why(z))
	case !r.hadTurn(z, r.line) && (by == byEvents || !r.excused(z)):
		return fmt.Errorf("it was never its turn")
	}
	return nil
}

// why says what a process knows.
func (c *client) why(z *znode) string {
	var known []string
	for what, is := range map[string]bool{
		"the znode is gone": c.gone[z.path], "its watch is set": c.there[z.path],
		"there are lists": len(c.lists) > 0, "the directory is known": c.born != 0,
		"somebody left before": c.markToken != 0, "events are late": c.late,
	} {
		if is {
			known = append(known, what)
		}
	}
	slices.Sort(known)
	return cmp.Or(strings.Join(known, ", "), "it knows nothing")
}
