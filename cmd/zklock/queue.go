package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// The directories of a semaphore: for its leases, and for who stands at the gate.
const (
	leasesDir = "leases"
	gateDir   = "locks"
)

// queueIn is what Inspect takes for a queue in the directory of a lock, "", and in those
// of a semaphore. The znodes in one are ephemeral, and have no children.
func queueIn(sub string) observe.Queue {
	kinds := []string{"lock-", "__READ__", "__WRIT__", "lease-", "latch-", "__lock__"}
	switch sub {
	case leasesDir:
		kinds = []string{"lease-"}
	case gateDir:
		kinds = []string{"lock-"}
	}
	return observe.Queue{Kinds: kinds}
}

// queued returns those children of a directory that stand in its queue, in order.
func queued(sub string, children []string) []string {
	members := queueIn(sub).Among(children)
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Text
	}
	return names
}

// standsInQueue tells by the name of a znode.
func standsInQueue(name string) bool { return len(queued("", []string{name})) > 0 }

// A head is a Conn that shows only the first participants of each directory: whoever
// looks at a queue reads a znode for each that is shown, and a queue may have any length.
type head struct {
	*recipes.Client
	most  int          // in each directory
	left  atomic.Int64 // how many were not shown
	known *readings    // what need not be read again; nil: nothing
}

// Get implements [recipes.Conn].
func (h *head) Get(path string) ([]byte, *zk.Stat, error) {
	if h.known == nil {
		return h.Client.Get(path)
	}
	return h.known.get(h.Client, path)
}

// Children implements [recipes.Conn].
func (h *head) Children(path string) ([]string, *zk.Stat, error) {
	children, stat, err := h.Client.Children(path)
	if err != nil {
		return nil, nil, err
	}
	first := queued("", children)
	if more := len(first) - h.most; more > 0 {
		h.left.Add(int64(more))
		first = first[:h.most]
	}
	return first, stat, nil
}

// inspect returns the queue at a path, and how many participants are in it beyond.
func (h *head) inspect(
	ctx context.Context, path string,
) (rows []row, left int, err error) {
	rows, left, err = h.members(ctx, path)
	return pair(rows), left, err
}

// members is inspect with a row for each znode.
func (h *head) members(
	ctx context.Context, path string,
) (rows []row, left int, err error) {
	h.left.Store(0)
	queue, err := recipes.Inspect(ctx, h, path)
	if err == nil && h.known != nil {
		h.known.keep(queue)
	}
	return rowsOf(path, queue), int(h.left.Load()), err
}

// A row is a participant, as ls and watch show it. The names are those of --json.
type row struct {
	Path    string    `json:"path"`
	Kind    string    `json:"kind"`
	State   string    `json:"state"`
	Node    string    `json:"node"`
	Nodes   []string  `json:"nodes"` // Node, and of a pair the other
	Session string    `json:"session"`
	Since   time.Time `json:"since"`
	Data    string    `json:"data"`
	// What is not UTF-8, which JSON cannot express: see exact. Servers other than
	// ZooKeeper may keep such names.
	Path64  []byte   `json:"path64,omitempty"`
	Nodes64 [][]byte `json:"nodes64,omitempty"` // all of Nodes
	Data64  []byte   `json:"data64,omitempty"`
}

// exact is a row that JSON can express without the loss of a byte.
func (r row) exact() row {
	if !utf8.ValidString(r.Path) {
		r.Path64 = []byte(r.Path)
	}
	if !utf8.ValidString(strings.Join(r.Nodes, "")) {
		for _, node := range r.Nodes {
			r.Nodes64 = append(r.Nodes64, []byte(node))
		}
	}
	if !utf8.ValidString(r.Data) {
		r.Data64 = []byte(r.Data)
	}
	return r
}

// States of a row.
const (
	holds = "holds"
	waits = "waits"
)

func rowsOf(path string, queue []recipes.Participant) []row {
	rows := make([]row, len(queue))
	for i, p := range queue {
		state := waits
		if p.Holding {
			state = holds
		}
		rows[i] = row{
			Path: path, Kind: p.Kind, State: state, Node: p.Node, Nodes: []string{p.Node},
			Session: fmt.Sprintf("0x%x", uint64(p.Session)), Since: p.Since,
			Data: string(p.Data),
		}
	}
	return rows
}

// pairKind is the kind of a row that stands for a mutex and a write lock. Its node is the
// write lock's, which a run has from the beginning.
const pairKind = "lock+write"

// pair makes one row of the two znodes of an exclusive run: of a session that has at a
// path a mutex, a write lock and nothing else. It holds once it holds both.
func pair(rows []row) []row {
	of := map[string][]*row{}
	for i := range rows {
		r := &rows[i]
		of[r.Session] = append(of[r.Session], r)
	}
	second := map[string]bool{}
	for _, both := range of {
		if len(both) != 2 || both[0].Kind == both[1].Kind || !pairs(both[0]) ||
			!pairs(both[1]) {
			continue
		}
		first, other := both[0], both[1]
		second[other.Node] = true
		if first.Kind == "lock" {
			first.Node, first.Nodes = other.Node, []string{other.Node, first.Node}
		} else {
			first.Nodes = append(first.Nodes, other.Node)
		}
		first.Kind = pairKind
		if other.State == waits {
			first.State = waits
		}
	}
	return slices.DeleteFunc(rows, func(r row) bool { return second[r.Node] })
}

// pairs tells whether a row can be one of a pair. What stands at a semaphore's gate is a
// lock, too.
func pairs(r *row) bool {
	return (r.Kind == "lock" || r.Kind == "write") && zkpath.Parent(r.Node) == r.Path
}
