package plant

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"strings"
)

// A Defect is one that the library could have.
type Defect struct {
	Name  string
	edits []Edit
}

// New returns a defect that takes all of these edits.
func New(name string, edits ...Edit) Defect { return Defect{name, edits} }

// A Func is a function of the library.
type Func struct {
	dir  string // of its package, relative to the module's root
	name string
}

// In names a function by the directory of its package, "." for the module's root, and by
// its name, with that of the receiver's type before it: "Conn.Hold".
func In(dir, name string) Func { return Func{dir, name} }

// An Edit is one of a function's body.
type Edit struct {
	in   Func
	op   op
	mark string // an expression
	code string
}

type op int

const (
	opReplace op = iota // the expression
	opDrop              // the statement that has the expression
	opBefore            // that statement
	opAfter             // that statement
	opFirst             // before all
)

// Replace puts another expression in the place of mark.
func (f Func) Replace(mark, code string) Edit { return Edit{f, opReplace, mark, code} }

// Drop deletes the statement in which mark is. Of statements in one another that is the
// innermost that stands in a list of them.
func (f Func) Drop(mark string) Edit { return Edit{f, opDrop, mark, ""} }

// Before puts code before the statement in which mark is.
func (f Func) Before(mark, code string) Edit { return Edit{f, opBefore, mark, code} }

// After puts code behind the statement in which mark is.
func (f Func) After(mark, code string) Edit { return Edit{f, opAfter, mark, code} }

// First puts code before all else that the function does.
func (f Func) First(code string) Edit { return Edit{f, opFirst, "", code} }

// A splice puts text in the place of what stands from one offset to another.
type splice struct {
	from, to int
	text     string
}

// splice finds out what an edit does to the text of a function.
func (e Edit) splice(fn *function) (splice, error) {
	if e.op == opFirst {
		at := fn.offset(fn.body.Lbrace) + 1
		return splice{at, at, "\n" + e.code + "\n"}, nil
	}
	expr, in, err := e.find(fn)
	if err != nil {
		return splice{}, err
	}
	at := in
	if e.op == opReplace {
		at = expr
	}
	from, to := fn.offset(at.Pos()), fn.offset(at.End())
	switch e.op {
	case opBefore:
		return splice{from, from, e.code + "\n"}, nil
	case opAfter:
		return splice{to, to, "\n" + e.code + "\n"}, nil
	}
	return splice{from, to, e.code}, nil
}

// find returns the mark, and the statement in which it is.
func (e Edit) find(fn *function) (mark, in ast.Node, err error) {
	wanted, err := parser.ParseExpr(e.mark)
	if err != nil {
		return nil, nil, fmt.Errorf("the mark %s: %w", e.mark, err)
	}
	text := types.ExprString(wanted)
	var found []string
	var path []ast.Node
	ast.Inspect(fn.body, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, n)
		if expr, ok := n.(ast.Expr); ok && types.ExprString(expr) == text {
			found = append(found, fn.position(n))
			mark, in = n, listed(path)
		}
		return true
	})
	if len(found) != 1 {
		return nil, nil, fmt.Errorf(
			"%s (%s) has %s %d times, and must have it once: %s", e.in.name,
			fn.position(fn.body), text, len(found), strings.Join(found, ", "))
	}
	return mark, in, nil
}

// listed returns the innermost node of a path that stands in a list of statements.
func listed(path []ast.Node) ast.Node {
	for i := len(path) - 1; i > 0; i-- {
		if _, ok := path[i].(ast.Stmt); !ok {
			continue
		}
		switch path[i-1].(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
			return path[i]
		}
	}
	return path[0]
}
