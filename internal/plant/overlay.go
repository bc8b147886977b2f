package plant

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Variable is the environment variable that names the defect that a program has.
const Variable = "PLANTED_DEFECT"

const switchText = `package planted

import "os"

var name = os.Getenv(%q)

// Is tells whether the program has the defect.
func Is(n string) bool { return n == name }
`

// A garden is a module with what is planted in it.
type garden struct {
	root     string
	packages map[string][]*source // by directory
	planted  map[*source][]splice
}

// Overlay plants all defects into copies of the sources of the module at root, which it
// writes into dir, and returns the file for go build -overlay.
func Overlay(root, dir string, defects []Defect) (overlay string, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	g := &garden{
		root: root, packages: map[string][]*source{}, planted: map[*source][]splice{},
	}
	names := map[string]bool{}
	for _, d := range defects {
		if names[d.Name] || len(d.edits) == 0 {
			return "", fmt.Errorf("%q is there twice, or changes nothing", d.Name)
		}
		names[d.Name] = true
		if err := g.plant(d); err != nil {
			return "", fmt.Errorf("%s: %w", d.Name, err)
		}
	}
	return g.write(dir)
}

// plant plants a defect.
func (g *garden) plant(d Defect) error {
	edits := map[Func][]splice{}
	functions := map[Func]*function{}
	for _, e := range d.edits {
		fn, err := g.function(e.in)
		if err != nil {
			return err
		}
		edit, err := e.splice(fn)
		if err != nil {
			return err
		}
		edits[e.in], functions[e.in] = append(edits[e.in], edit), fn
	}
	for in, fn := range functions {
		if err := sort(edits[in]); err != nil {
			return err
		}
		g.planted[fn.source] = append(g.planted[fn.source], fn.mutant(d.Name, edits[in]))
	}
	return nil
}

// function finds one in a package, which is read once.
func (g *garden) function(f Func) (*function, error) {
	if g.packages[f.dir] == nil {
		sources, err := parseDir(filepath.Join(g.root, filepath.FromSlash(f.dir)))
		if err != nil {
			return nil, err
		}
		g.packages[f.dir] = sources
	}
	fn, err := find(g.packages[f.dir], f.name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.dir, err)
	}
	return fn, nil
}

// write writes the copies, the package that they ask, and the file that lists them.
func (g *garden) write(dir string) (overlay string, err error) {
	module, err := modulePath(g.root)
	if err != nil {
		return "", err
	}
	replaced := map[string]string{}
	write := func(source, text string) error {
		within, err := filepath.Rel(g.root, source)
		if err != nil {
			return err
		}
		mutant := filepath.Join(dir, within)
		if err := os.MkdirAll(filepath.Dir(mutant), 0o700); err != nil {
			return err
		}
		replaced[source] = mutant
		return os.WriteFile(mutant, []byte(text), 0o600)
	}
	asked := filepath.Join(g.root, "internal", "planted", "planted.go")
	if err := write(asked, fmt.Sprintf(switchText, Variable)); err != nil {
		return "", err
	}
	for s, splices := range g.planted {
		at := s.offset(s.ast.Name.End())
		splices = append(splices, splice{
			at, at, fmt.Sprintf("; import %q", module+"/internal/planted"),
		})
		if err := sort(splices); err != nil {
			return "", err
		}
		if err := write(s.path, s.within(0, len(s.text), splices)); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// modulePath reads it from go.mod, which begins with it.
func modulePath(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(text))
	if len(words) < 2 || words[0] != "module" {
		return "", fmt.Errorf("%s: go.mod does not begin with the module's path", root)
	}
	return words[1], nil
}
