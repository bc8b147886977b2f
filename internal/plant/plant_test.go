package plant_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/plant"
)

// A module is made of these files.
type module map[string]string

func (m module) write(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range m {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

var orchard = module{
	"go.mod": "module example.com/orchard\n\ngo 1.26\n",
	"main.go": `// Package main says what it has.
package main // a comment

import "example.com/orchard/internal/trees"

func main() {
	b := trees.Basket[int]{}
	b.Put(1)
	// The second is put by hand.
	b.Put(2) // behind the first
	println(b.Count(), trees.Name(b.Count()))
}
`,
	"internal/trees/basket.go": `package trees

type Basket[T any] struct{ all []T }

func (b *Basket[T]) Put(v T) {
	b.all = append(b.all, v)
}

func (b Basket[T]) Count() (n int) {
	for range b.all {
		n++
	}
	return n
}
`,
	"internal/trees/name.go": `package trees

func Name(n int) string {
	switch {
	case n > 1:
		return "many"
	case n == 1:
		return "one"
	}
	if left := n + 1; left != 1 { return "a debt" } else { return "none" }
}
`,
	"internal/trees/name_test.go": "package trees\n\nfunc Name() {}\n",
}

var (
	main  = plant.In(".", "main")
	put   = plant.In("internal/trees", "Basket.Put")
	count = plant.In("internal/trees", "Basket.Count")
	name  = plant.In("internal/trees", "Name")
)

func TestEachDefectIsPlanted(t *testing.T) {
	said := map[string]string{} // by defect
	var defects []plant.Defect
	add := func(says, defect string, edits ...plant.Edit) {
		said[defect] = says
		defects = append(defects, plant.New(defect, edits...))
	}
	add("1 one", "dropped", main.Drop("b.Put(2)"))
	add("2 many", "replaced", main.Replace("b.Put(1)", "b.Put(7)"))
	add("3 many", "before", main.Before("trees.Name", "b.Put(3)"))
	add("4 many", "after", put.After("append", "b.all = append(b.all, v)"))
	add("0 none", "first", put.First("return"))
	add("1 many", "of a result", count.First("return 1"),
		name.Replace("n == 1", "false"), name.Replace(`"none"`, `"?"`),
		name.Replace("n > 1", "n > 0"))
	add("2 one", "of a case", name.Replace(`"many"`, `"one"`))
	add("0 a debt", "in an if", put.Drop("append"),
		name.Replace("left != 1", "left == 1"))
	add("0 ", "ahead of an if", put.Drop("append"),
		name.Before("n + 1", `if n == 0 { return "" }`))

	root, dir := orchard.write(t), t.TempDir()
	overlay, err := plant.Overlay(root, dir, defects)
	require.NoError(t, err)
	program := filepath.Join(dir, "program")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay,
		"-o", program, ".")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	said[""] = "2 many"
	for defect, says := range said {
		run := exec.CommandContext(t.Context(), program)
		run.Env = append(os.Environ(), plant.Variable+"="+defect)
		out, err := run.CombinedOutput()
		require.NoError(t, err, "%s: %s", defect, out)
		require.Equal(t, says+"\n", string(out), defect)
	}
}

func TestWhatMovesADefectIsTold(t *testing.T) {
	for says, defects := range map[string][]plant.Defect{
		"main (main.go:6:13) has b.Take 0 times, and must have it once": {
			plant.New("d", main.Drop("b.Take")),
		},
		"has b.Put 2 times, and must have it once: " +
			"main.go:8:2, main.go:10:2": {plant.New("d", main.Drop("b.Put"))},
		"internal/trees: 0 functions Put, and there must be one": {
			plant.New("d", plant.In("internal/trees", "Put").First("return")),
		},
		"nowhere: 0 functions Put, and there must be one": {
			plant.New("d", plant.In("nowhere", "Put").First("return")),
		},
		"the mark b.Put(: ":                      {plant.New("d", main.Drop("b.Put("))},
		`"d" is there twice, or changes nothing`: {plant.New("d")},
		`"e" is there twice, or changes nothing`: {
			plant.New("e", put.First("return")), plant.New("e", main.First("return")),
		},
		"two of its edits are of one place": {
			plant.New("d", main.Drop("b.Put(2)"), main.Replace("2", "3")),
		},
	} {
		_, err := plant.Overlay(orchard.write(t), t.TempDir(), defects)
		require.ErrorContains(t, err, says)
	}
}
