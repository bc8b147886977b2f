package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// before is an API, of which the cases of TestChange change a part.
const before = `package p

type Lock interface{ Acquire(n int) error }

type Closed interface{ hidden() }

type Hold struct {
	Token int
	owner string
}

func (h *Hold) Release(force bool) error { return nil }

type Key = key

type key struct{}

func (key) Bytes() []byte { return nil }

const Most = 5

func Do(f func(h *Hold) error, times ...int) error { return nil }
`

// What a change takes from callers, and what it gives them.
func TestChange(t *testing.T) {
	for _, change := range []struct {
		name, from, to string
		gone, added    []string
	}{
		{"a parameter's name", "n int", "leases int", nil, nil},
		{"a name in a parameter", "h *Hold) error,", "hold *Hold) error,", nil, nil},
		{"an unexported field", "owner string", "name string", nil, nil},
		{
			"a method that implementations lack", "int) error", "int) error; Close()",
			[]string{"type Lock interface { Acquire }"},
			[]string{"method (Lock) Close()", "type Lock interface { Acquire; Close }"},
		},
		{
			"a method of an interface of ours", "hidden()", "hidden(); Close()",
			nil,
			[]string{"method (Closed) Close()"},
		},
		{
			"a result", "Release(force bool) error { return nil", "Release(force bool) {",
			[]string{"method (*Hold) Release(bool) error"},
			[]string{"method (*Hold) Release(bool)"},
		},
		{
			"a field's type", "Token int", "Token int64",
			[]string{"field (Hold) Token int"},
			[]string{"field (Hold) Token int64"},
		},
		{
			"no comparison", "owner string", "owner []string",
			nil, nil,
		},
		{
			"a method behind an alias", "Bytes()", "Text()",
			[]string{"method (Key) Bytes() []byte"},
			[]string{"method (Key) Text() []byte"},
		},
		{
			"a constant", "5", "6",
			[]string{"const Most untyped int = 5"},
			[]string{"const Most untyped int = 6"},
		},
		{
			"a variadic parameter", ", times ...int", "",
			[]string{"func Do(func(*Hold) error, ...int) error"},
			[]string{"func Do(func(*Hold) error) error"},
		},
	} {
		t.Run(change.name, func(t *testing.T) {
			require.Contains(t, before, change.from)
			old := featuresOf(t, before)
			now := featuresOf(t, strings.Replace(before, change.from, change.to, 1))
			require.ElementsMatch(t, change.gone, without(old, now))
			require.ElementsMatch(t, change.added, without(now, old))
		})
	}
}

// Both complaints say what to do.
func TestComplaints(t *testing.T) {
	require.Empty(t, complaints("test/p.txt", []string{"func A()"}, []string{"func A()"}))
	said := complaints("test/p.txt", []string{"func A()"}, []string{"func B()"})
	require.Len(t, said, 2)
	require.Contains(t, said[0], "breaks callers, who can depend on:\n\tfunc A()\n")
	require.Contains(t, said[0], "delete these lines from test/p.txt")
	require.Contains(t, said[1], "no release can take it back:\n\tfunc B()\n")
	require.Contains(t, said[1], "go test ./internal/api -update")
}

func featuresOf(t *testing.T, source string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "p.go", source, 0)
	require.NoError(t, err)
	p, err := new(types.Config).Check("p", files, []*ast.File{file}, nil)
	require.NoError(t, err)
	return features(p)
}
