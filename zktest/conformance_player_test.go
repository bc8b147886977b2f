package zktest_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	// patience is longer than any answer takes, but for a server that gives none.
	patience = 10 * time.Second
	// usual is the session timeout that scripts ask for unless they say otherwise, and
	// the longest that is granted.
	usual = 10 * time.Second
	// tick is the one of both servers. It bounds the timeouts, and what the end of a
	// session costs.
	tick = 500 * time.Millisecond
)

// A player runs scripts on one server, and writes down what came of each step in a way
// that does not depend on the server: sessions are named in the order of their
// appearance, a zxid is the distance to that of the script's base node, and of times only
// the relations count.
type player struct {
	addr  string
	dial  func() (net.Conn, error)
	stop  func()   // nil for a server that is not the player's own
	ruler *zk.Conn // makes and removes the bases
	base  string
	zero  int64
	names map[int64]string // of sessions
	count map[string]int   // sessions of each name
	live  map[int64]grant  // those that nobody has closed
	roles map[string]role
}

// A role is one of the sessions of a script, one after the other: c0 and so on with
// go-zookeeper's client, r0 with raw packets.
type role interface {
	// do runs a step and returns the answer.
	do(s step) string
	// arrived returns what the server has sent unasked until now: it asks something
	// itself first, since a server sends the event before the answer.
	arrived() []string
	// end closes what is open. The sessions may stay behind.
	end()
}

// A grant is what a server says to a new session.
type grant struct {
	id       int64
	password []byte
	timeout  int32
}

// newPlayer connects to addr by dial, which may take longer than the client's own dialer
// waits.
func newPlayer(addr string, dial func() (net.Conn, error)) (*player, error) {
	ruler, events, err := zk.Connect(
		[]string{addr}, usual,
		zk.WithDialer(func(string, string, time.Duration) (net.Conn, error) {
			return dial()
		}),
		zk.WithHostProvider(&only{addr: addr}), zk.WithLogger(silent{}),
	)
	if err != nil {
		return nil, err
	}
	go func() {
		for range events {
			continue // until the client closes them
		}
	}()
	return &player{addr: addr, dial: dial, ruler: ruler}, nil
}

func (p *player) close() {
	p.ruler.Close()
	if p.stop != nil {
		p.stop()
	}
}

// play runs a script below a new node base.
func (p *player) play(base string, script []step) ([][]string, error) {
	if _, err := p.ruler.Create(
		base, nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll),
	); err != nil {
		return nil, fmt.Errorf("create %s on %s: %w", base, p.addr, err)
	}
	_, stat, err := p.ruler.Exists(base)
	if err != nil {
		return nil, fmt.Errorf("exists %s on %s: %w", base, p.addr, err)
	}
	return p.playFrom(base, stat.Czxid, script)
}

// playFrom counts zxids from zero. It returns the lines that each step gave: its answer,
// and the events that came after it.
func (p *player) playFrom(base string, zero int64, script []step) ([][]string, error) {
	p.base, p.zero = base, zero
	p.names, p.count = map[int64]string{}, map[string]int{}
	p.live, p.roles = map[int64]grant{}, map[string]role{}
	transcript := make([][]string, len(script))
	for i, s := range script {
		done := make(chan []string, 1)
		go func() { done <- p.step(s) }()
		select {
		case transcript[i] = <-done:
		case <-time.After(3 * patience):
			return transcript[:i], fmt.Errorf("%s on %s: no answer", s.line, p.addr)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.roles)) {
		p.roles[name].end()
	}
	return transcript, p.tidy()
}

func (p *player) step(s step) []string {
	lines := []string{p.role(s.who).do(s)}
	names := slices.Sorted(maps.Keys(p.roles))
	events := make([][]string, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { events[i] = p.roles[name].arrived() })
	}
	wg.Wait()
	for i, name := range names {
		if unordered[s.verb] {
			slices.Sort(events[i])
		}
		for _, e := range events[i] {
			lines = append(lines, name+" < "+e)
		}
	}
	return lines
}

// unordered are the steps after which the order of events is anybody's: a server goes
// through a session's ephemeral nodes, and the client through its watches, in the order
// of a hash table.
var unordered = map[string]bool{
	"close": true, "expire": true, "up": true, "closeSession": true, "gone": true,
}

func (p *player) role(name string) role {
	r, ok := p.roles[name]
	if !ok {
		if strings.HasPrefix(name, "r") {
			r = &raw{p: p, name: name}
		} else {
			r = &client{p: p, name: name}
		}
		p.roles[name] = r
	}
	return r
}

// tidy closes the sessions that the script left behind, which would otherwise end, and
// take zxids, in the middle of another one; and removes the nodes that may be removed.
func (p *player) tidy() error {
	for _, id := range slices.Sorted(maps.Keys(p.live)) {
		r := &raw{p: p, name: "tidy"}
		if err := r.takeOver(p.live[id]); err != nil {
			return fmt.Errorf("close session %s on %s: %w", p.names[id], p.addr, err)
		}
	}
	p.remove(quotaRoot + p.base)
	p.remove(p.base)
	return nil
}

func (p *player) remove(path string) {
	children, _, _ := p.ruler.Children(path) // its ACL may refuse
	for _, child := range children {
		p.remove(path + "/" + child)
	}
	_ = p.ruler.Delete(path, -1) // likewise
}

// granted names a session.
func (p *player) granted(role string, g grant) string {
	name, ok := p.names[g.id]
	if !ok {
		p.count[role]++
		name = fmt.Sprintf("%s.%d", role, p.count[role])
		p.names[g.id] = name
	}
	p.live[g.id] = g
	return name
}

// latest returns the newest session of a role.
func (p *player) latest(role string) grant {
	name := fmt.Sprintf("%s.%d", role, p.count[role])
	for id, n := range p.names {
		if n == name {
			return grant{id: id, password: p.live[id].password}
		}
	}
	panic("BUG: a script speaks of a session of " + role + ", which has none")
}

func (p *player) zxid(z int64) string {
	switch {
	case z <= 0:
		return fmt.Sprint(z)
	case z < p.zero:
		return "before"
	}
	return fmt.Sprintf("%+d", z-p.zero)
}

// text takes the base out of what a server says.
func (p *player) text(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, p.base+"/", "/"), p.base, ".")
}

func (p *player) stat(s *zk.Stat) string {
	switch {
	case s == nil:
		return "{}"
	// The configuration, whose length is that of the addresses.
	case s.Czxid == 0 && s.Version == -1:
		return fmt.Sprintf("{c0 m%s v-1 av%d %s}", p.zxid(s.Mzxid), s.Aversion, times(s))
	// The root, whose children tell how many scripts have been played before.
	case s.Czxid == 0:
		return fmt.Sprintf("{c0 m%s v%d av%d%s len=%d %s}",
			p.zxid(s.Mzxid), s.Version, s.Aversion, p.owner(s.EphemeralOwner),
			s.DataLength, times(s))
	}
	return fmt.Sprintf("{c%s m%s p%s v%d cv%d av%d%s len=%d children=%d %s}",
		p.zxid(s.Czxid), p.zxid(s.Mzxid), p.zxid(s.Pzxid),
		s.Version, s.Cversion, s.Aversion, p.owner(s.EphemeralOwner),
		s.DataLength, s.NumChildren, times(s))
}

func (p *player) owner(id int64) string {
	if id == 0 {
		return ""
	}
	if name, ok := p.names[id]; ok {
		return " owner=" + name
	}
	return fmt.Sprintf(" owner=%#x", uint64(id))
}

// times says whether the times of s make sense. How far they are apart is anybody's, and
// a node may have been changed in the millisecond of its creation.
func times(s *zk.Stat) string {
	age := time.Since(time.UnixMilli(s.Ctime)).Abs()
	switch {
	case s.Ctime == 0 && s.Mtime == 0:
		return "epoch"
	case s.Ctime == 0: // the server made it, and a client has changed it
		return "changed"
	case age > time.Hour:
		return fmt.Sprintf("ctime is wrong by %v", age)
	case s.Version == 0 && s.Mtime != s.Ctime:
		return "mtime without a change"
	case s.Mtime < s.Ctime:
		return "mtime before ctime"
	}
	return "now"
}

func list(names []string) string {
	slices.Sort(names)
	return "[" + strings.Join(names, " ") + "]"
}

func acls(all []zk.ACL) string {
	entries := make([]string, len(all))
	for i, a := range all {
		entries[i] = fmt.Sprintf("%s/%s:%#x", a.Scheme, a.ID, a.Perms)
	}
	return "[" + strings.Join(entries, " ") + "]"
}

func text(data []byte) string {
	switch {
	case data == nil:
		return "null"
	case len(data) > 100:
		return fmt.Sprintf("%d bytes %s..", len(data), hex.EncodeToString(data[:8]))
	}
	return fmt.Sprintf("%q", data)
}

// silent is a logger for a client that is made to fail.
type silent struct{}

func (silent) Printf(string, ...any) {}

// only is a host provider for one server. With the client's own it would take a second to
// come back to the only server; with this one it does so once that has failed twice.
type only struct {
	addr  string
	tries int // since the last time that it was connected
}

func (*only) Init([]string) error { return nil }
func (*only) Len() int            { return 1 }

func (o *only) Next() (string, bool) {
	o.tries++
	return o.addr, o.tries > 2
}

func (o *only) Connected() { o.tries = 0 }

func dialTCP(addr string) func() (net.Conn, error) {
	return func() (net.Conn, error) { return net.DialTimeout("tcp", addr, patience) }
}
