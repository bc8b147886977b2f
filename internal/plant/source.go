package plant

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A source is a file of a package.
type source struct {
	path string // absolute
	text string
	fset *token.FileSet
	ast  *ast.File
}

// A function is one of a source.
type function struct {
	*source
	body    *ast.BlockStmt
	returns bool // something
}

// parseDir reads the sources of a package, without its tests.
func parseDir(dir string) (sources []*source, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s := &source{path: path, text: string(text), fset: token.NewFileSet()}
		s.ast, err = parser.ParseFile(s.fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// find returns the only function of that name in a package.
func find(sources []*source, name string) (*function, error) {
	var found []*function
	for _, s := range sources {
		for _, d := range s.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Body != nil && nameOf(fn) == name {
				found = append(found, &function{s, fn.Body, fn.Type.Results != nil})
			}
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d functions %s, and there must be one", len(found), name)
	}
	return found[0], nil
}

// nameOf is how [In] names a function.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	receiver := fn.Recv.List[0].Type
	if p, ok := receiver.(*ast.StarExpr); ok {
		receiver = p.X
	}
	if g, ok := receiver.(*ast.IndexExpr); ok { // of a generic type
		receiver = g.X
	}
	if id, ok := receiver.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// position is the name of the file, the line and the column.
func (s *source) position(n ast.Node) string {
	at := s.fset.Position(n.Pos())
	at.Filename = filepath.Base(at.Filename)
	return at.String()
}

// sort puts splices in order. No two may be of one text.
func sort(splices []splice) error {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	for i := 1; i < len(splices); i++ {
		if splices[i].from < splices[i-1].to {
			return errors.New("two of its edits are of one place")
		}
	}
	return nil
}

// within returns the text from one offset to another, with splices made, which are in
// order.
func (s *source) within(from, to int, splices []splice) string {
	var text strings.Builder
	for _, sp := range splices {
		text.WriteString(s.text[from:sp.from] + sp.text)
		from = sp.to
	}
	text.WriteString(s.text[from:to])
	return text.String()
}

// mutant returns what stands at the head of the function, so that it has the defect if
// that is asked for.
func (fn *function) mutant(name string, edits []splice) splice {
	from, to := fn.offset(fn.body.Lbrace)+1, fn.offset(fn.body.Rbrace)
	end := "return"
	if fn.returns {
		end = `panic("unreachable")`
	}
	return splice{from, from, fmt.Sprintf("\nif planted.Is(%q) {%s\n%s\n}\n",
		name, fn.within(from, to, edits), end)}
}
