package order

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// grants reports whether a list lets a participant hold the lock.
func grants(t *rapid.T, children []string, self Name) bool {
	t.Helper()
	q := New(Rules{Excludes: func(ahead, self Name) bool {
		return ahead.Kind == "__WRIT__" || self.Kind == "__WRIT__"
	}})
	m := q.Created(Creation{Name: self})
	names := Participants(children, []string{"__READ__", "__WRIT__"})
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
		add := func(who string, seq int32) Name {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			text := fmt.Sprintf("%s-%s%010d", who, kind, seq)
			children = append(children, text)
			return Name{Text: text, Kind: kind, Seq: seq}
		}
		var honest []Name
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

// The order does not depend on that in which a server lists the znodes, and a queue whose
// order is not certain is refused whatever that is.
func TestSpread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seqs    []int32
		refused bool
	}{
		"empty":                       {nil, false},
		"one":                         {[]int32{-1 << 31}, false},
		"neighbours":                  {[]int32{7, 8}, false},
		"neighbours as it wraps":      {[]int32{1<<31 - 1, -1 << 31}, false},
		"just near enough":            {[]int32{5, 5 + 1<<30 - 1}, false},
		"near enough as it wraps":     {[]int32{1<<31 - 2, -1<<31 + 1<<30 - 3}, false},
		"too far apart":               {[]int32{5, 5 + 1<<30}, true},
		"too far apart as it wraps":   {[]int32{1<<31 - 2, -1<<31 + 1<<30 - 2}, true},
		"opposite":                    {[]int32{0, -1 << 31}, true},
		"a cycle":                     {[]int32{0, 700e6, 1400e6, -1494967296}, true},
		"a cycle behind real numbers": {[]int32{3, 4, 700e6, 1400e6, -1494967296}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var children []string
			for _, seq := range c.seqs {
				children = append(children, fmt.Sprintf("lock-%010d", seq))
			}
			for range children { // in each rotation
				err := CheckSpread(Participants(children, mutexKinds))
				require.Equal(t, c.refused, err != nil, "%v: %v", children, err)
				if c.refused {
					require.ErrorContains(t, err, children[0][:5])
				}
				children = append(children[1:], children[0])
			}
		})
	}
}

// Also a queue whose order is not certain is shown in one order, whatever the server
// lists first: an error names the same two of its znodes each time.
func TestTheOrderIsNotThatOfTheList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var children []string
		for i, seq := range rapid.SliceOf(rapid.Int32()).Draw(t, "numbers") {
			children = append(children, fmt.Sprintf("%d-lock-%010d", i, seq))
		}
		want := Participants(children, mutexKinds)
		listed := rapid.Permutation(children).Draw(t, "listed")
		require.Equal(t, want, Participants(listed, mutexKinds))
	})
}

func TestNumbersThatAreNotOfOneQueue(t *testing.T) {
	for _, c := range []struct {
		a, b int32
		far  bool
	}{
		{5, 5, false},
		{7, spreadLimit + 6, false},
		{7, spreadLimit + 7, true},
		{-7, spreadLimit - 8, false},
		{-7, spreadLimit - 7, true},
		{math.MaxInt32, math.MinInt32, false},
		{math.MaxInt32, math.MinInt32 + spreadLimit - 2, false},
		{math.MaxInt32, math.MinInt32 + spreadLimit - 1, true},
	} {
		a, b := &Member{name: Name{Seq: c.a}}, &Member{name: Name{Seq: c.b}}
		require.Equal(t, c.far, a.isFar(b), "%d and %d", c.a, c.b)
		require.Equal(t, c.far, b.isFar(a), "%d and %d", c.b, c.a)
	}
}
