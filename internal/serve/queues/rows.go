package queues

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// A Row is a participant, as ls and watch show it. The names are those of --json.
type Row struct {
	Path    string    `json:"path"`
	Kind    string    `json:"kind"`
	State   string    `json:"state"`
	Node    string    `json:"node"`
	Nodes   []string  `json:"nodes"` // Node, and of a pair the other
	Session string    `json:"session"`
	Since   time.Time `json:"since"`
	Data    string    `json:"data"`
	// What is not UTF-8, which JSON cannot express: see Exact. Servers other than
	// ZooKeeper may keep such names.
	Path64  []byte   `json:"path64,omitempty"`
	Nodes64 [][]byte `json:"nodes64,omitempty"` // all of Nodes
	Data64  []byte   `json:"data64,omitempty"`
}

// Exact is a row that JSON can express without the loss of a byte.
func (r Row) Exact() Row {
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
	Holds = "holds"
	Waits = "waits"
)

// NoSession is the session of a znode that belongs to nobody.
const NoSession = "0x0"

// RowsOf returns a row for each participant.
func RowsOf(path string, queue []recipes.Participant) []Row {
	rows := make([]Row, len(queue))
	for i, p := range queue {
		state := Waits
		if p.Holding {
			state = Holds
		}
		rows[i] = Row{
			Path: path, Kind: p.Kind, State: state, Node: p.Node, Nodes: []string{p.Node},
			Session: fmt.Sprintf("0x%x", uint64(p.Session)), Since: p.Since,
			Data: string(p.Data),
		}
	}
	return rows
}

// PairKind is the kind of a row that stands for a mutex and a write lock. Its node is the
// write lock's, which a run has from the beginning.
const PairKind = "lock+write"

// Pair makes one row of the two znodes of an exclusive run: of a session that has at a
// path a mutex, a write lock and nothing else. It holds once it holds both.
func Pair(rows []Row) []Row {
	of := map[string][]*Row{}
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
		first.Kind = PairKind
		if other.State == Waits {
			first.State = Waits
		}
	}
	return slices.DeleteFunc(rows, func(r Row) bool { return second[r.Node] })
}

// pairs tells whether a row can be one of a pair. What stands at a semaphore's gate is a
// lock, too.
func pairs(r *Row) bool {
	return (r.Kind == "lock" || r.Kind == "write") && zkpath.Parent(r.Node) == r.Path
}
