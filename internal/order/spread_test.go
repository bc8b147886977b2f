package order

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/zkrecipes/recipes/internal/seqname"
)

// grants reports whether a list lets a participant hold the lock.
func grants(t *rapid.T, children []string, self seqname.Name) bool {
	t.Helper()
	q := New(Rules{Excludes: func(ahead, self seqname.Name) bool {
		return ahead.Kind == "__WRIT__" || self.Kind == "__WRIT__"
	}})
	m := q.Created(Creation{Name: self})
	names := seqname.Participants(children, []string{"__READ__", "__WRIT__"})
	l := Listing{Names: names, Czxid: 1, Pzxid: 9}
	missing, err := q.Listed(q.Asking(0, false), l)
	require.NoError(t, q.check())
	if err != nil {
		return false
	}
	require.Empty(t, missing, "%s is not found in %v", self.Text, children)
	return q.Decide(m, 0).Granted
}

// A client with the permission CREATE can add znodes with any number. That must not let
// two participants hold the lock that have their numbers from the server.
func TestAtMostOneHoldsByAnyList(t *testing.T) {
	kinds := []string{"__READ__", "__WRIT__"}
	granted := 0
	rapid.Check(t, func(t *rapid.T) {
		var children []string
		add := func(who string, seq int32) seqname.Name {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			text := fmt.Sprintf("%s-%s%010d", who, kind, seq)
			children = append(children, text)
			return seqname.Name{Text: text, Kind: kind, Seq: seq}
		}
		var honest []seqname.Name
		seq := rapid.Int32().Draw(t, "counter")
		for n := range rapid.IntRange(1, 4).Draw(t, "honest") {
			seq += rapid.Int32Range(1, 1000).Draw(t, "joined meanwhile")
			honest = append(honest, add(fmt.Sprint("honest", n), seq))
		}
		for n := range rapid.IntRange(0, 4).Draw(t, "forged") {
			far := rapid.SampledFrom([]int32{
				0, 1, 700e6, 1<<30 - 1, 1 << 30, 1400e6, -1500e6, -1 << 31, -1 << 30, -1,
			}).Draw(t, "far")
			add(fmt.Sprint("forged", n), seq+far+rapid.Int32Range(-5, 5).Draw(t, "off"))
		}
		children = rapid.Permutation(children).Draw(t, "children")
		for _, a := range honest {
			if !grants(t, children, a) {
				continue
			}
			granted++
			for _, b := range honest {
				excludes := a.Kind == "__WRIT__" || b.Kind == "__WRIT__"
				if a != b && excludes && grants(t, children, b) {
					t.Fatalf("%s and %s both hold by %v", a.Text, b.Text, children)
				}
			}
		}
	})
	require.NotZero(t, granted)
}
