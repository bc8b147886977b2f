package simulator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/acceptor"
)

// smalls are runs that the model makes as well.
var smalls = []struct {
	name  string
	steps func(*small)
}{
	{"one after the other", func(s *small) {
		for owner := range s.owners {
			s.wants(owner)
			s.leaves(owner)
		}
	}},
	{"a hand-over", func(s *small) {
		s.wants(0)
		s.wants(1)
		s.leaves(0)
		s.leaves(1)
	}},
	{"a notification", func(s *small) {
		s.wants(2)
		s.wants(0)
		s.leaves(2)
		s.leaves(0)
	}},
	{"another between", func(s *small) {
		s.wants(0)
		s.wants(2)
		s.wants(1)
		s.leaves(0)
		s.leaves(2)
		s.leaves(1)
	}},
	{"the next by number", func(s *small) {
		s.wants(0)
		s.wants(1)
		s.leaves(0)
		s.wants(0)
		s.leaves(1)
		s.leaves(0)
	}},
	{"an outage of a waiter", func(s *small) {
		s.wants(2)
		s.wants(0)
		// Longer than the library takes to look: an outage between two looks, which
		// nobody notices, leaves its watches to count.
		s.link(0).Cut()
		settle()
		s.link(0).Heal()
		settle()
		settle()
		s.leaves(2)
		s.leaves(0)
	}},
	{"a deleted znode", func(s *small) {
		s.wants(0)
		s.wants(2)
		s.isDeleted(0)
		s.leaves(2)
	}},
	{"a cut-off holder", func(s *small) {
		s.wants(0)
		s.wants(2)
		s.isCutOff(0)
		s.leaves(2)
	}},
}

// A line tells which of a trace's is meant: the first of that kind of an owner's.
type line struct {
	kind  string
	owner int
}

func (w line) of(l acceptor.Line) bool {
	return l.Kind == w.kind && l.Worker == connOf(w.owner) && l.Owner == w.owner%2
}

// move puts a line right behind another.
func move(what, behind line) func([]acceptor.Line) []acceptor.Line {
	return func(trace []acceptor.Line) []acceptor.Line {
		at := slices.IndexFunc(trace, what.of)
		moved := trace[at]
		trace = slices.Delete(trace, at, at+1)
		return slices.Insert(trace, slices.IndexFunc(trace, behind.of)+1, moved)
	}
}

// without leaves out all lines that are meant.
func without(is func(acceptor.Line) bool) func([]acceptor.Line) []acceptor.Line {
	return func(trace []acceptor.Line) []acceptor.Line {
		return slices.DeleteFunc(trace, is)
	}
}

// brokens are what no correct library does.
var brokens = []struct {
	name, of string
	with     func([]acceptor.Line) []acceptor.Line
}{
	{
		"granted before the hand-over", "a hand-over",
		move(line{"granted", 1}, line{"queued", 1}),
	},
	{
		"granted while another holds", "a notification",
		move(line{"granted", 0}, line{"queued", 0}),
	},
	{
		"granted ahead of another", "another between",
		move(line{"granted", 1}, line{"releasing", 0}),
	},
	{"granted without a list", "a notification", without(func(l acceptor.Line) bool {
		return l.Worker == 0 && l.Op == "getChildren2"
	})},
	{"granted with an unwatched znode", "a notification", without(
		func(l acceptor.Line) bool {
			return l.Worker == 0 && l.Op == "getData" && strings.HasSuffix(l.Path, "1")
		})},
	{
		"told behind the next grant", "a cut-off holder",
		move(line{"lost", 0}, line{"granted", 2}),
	},
	{"never told", "a cut-off holder", without(line{"lost", 0}.of)},
	{"never told of the deletion", "a deleted znode", without(line{"lost", 0}.of)},
	{"left behind", "one after the other", without(func(l acceptor.Line) bool {
		return l.Op == "delete" && strings.HasSuffix(l.Path, "2")
	})},
}

// TestSmallTraces demands that the acceptor takes each of the small runs, and rejects it
// once it is broken. TRACES_PML=DIR writes all of them there for Spin, which has to come
// to the same verdicts: scripts/model.sh runs that.
func TestSmallTraces(t *testing.T) {
	traces := map[string][]acceptor.Line{}
	for _, s := range smalls {
		trace := recordSmall(t, s.steps)
		traces[s.name] = trace
		require.NoError(t, acceptor.Accept(trace), s.name)
		writePromela(t, "accepted", s.name, trace)
	}
	for _, b := range brokens {
		trace := b.with(slices.Clone(traces[b.of]))
		err := acceptor.Accept(trace)
		require.Error(t, err, b.name)
		t.Logf("%s: %.200s", b.name, err)
		writePromela(t, "rejected", b.name, trace)
	}
}

// writePromela writes a trace for Spin, if TRACES_PML says where.
func writePromela(t *testing.T, verdict, name string, trace []acceptor.Line) {
	t.Helper()
	dir := os.Getenv("TRACES_PML")
	if dir == "" {
		return
	}
	text, err := acceptor.Promela(trace)
	require.NoError(t, err)
	name = strings.ReplaceAll(name, " ", "-")
	require.NoError(t, os.WriteFile(
		filepath.Join(dir, verdict+"_"+name+".pml"), []byte(text), 0o600))
}
