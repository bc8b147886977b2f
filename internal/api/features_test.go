package api_test

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// A record collects lines on one package.
type record struct {
	pkg   *types.Package
	lines []string
}

// features returns what a package exports, sorted, a line for each thing that a caller's
// code can depend on.
func features(p *types.Package) []string {
	r := &record{pkg: p}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			r.object(o)
		}
	}
	slices.Sort(r.lines)
	return slices.Compact(r.lines)
}

func (r *record) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *record) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		r.add("const %s %s = %s", o.Name(), r.text(o.Type()), o.Val().ExactString())
	case *types.Var:
		r.add("var %s %s", o.Name(), r.text(o.Type()))
	case *types.Func:
		r.add("func %s%s", o.Name(), r.signature(o))
	case *types.TypeName:
		if o.IsAlias() {
			r.add("type %s = %s", o.Name(), r.text(types.Unalias(o.Type())))
		}
		r.members(o.Name(), types.Unalias(o.Type()))
	}
}

// members writes what a type has. Whether a struct can be compared is no part of it:
// docs/compatibility.md keeps room for fields that cannot. Of a type that is an alias
// this may be another package's, which callers see as ours.
func (r *record) members(name string, t types.Type) {
	switch u := t.Underlying().(type) {
	case *types.Interface:
		r.iface(name, u)
		return
	case *types.Struct:
		r.add("type %s struct", name)
		for field := range u.Fields() {
			if field.Exported() {
				r.add("field (%s) %s %s", name, field.Name(), r.text(field.Type()))
			}
		}
	default:
		r.add("type %s %s", name, r.text(u))
	}
	values := types.NewMethodSet(t)
	for selection := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		method := selection.Obj().(*types.Func)
		if !method.Exported() {
			continue
		}
		receiver := name
		if values.Lookup(method.Pkg(), method.Name()) == nil {
			receiver = "*" + name
		}
		r.add("method (%s) %s%s", receiver, method.Name(), r.signature(method))
	}
}

// iface writes an interface. One that callers can implement has a line with all its
// methods: another one would break them.
func (r *record) iface(name string, i *types.Interface) {
	var names []string
	ours := false
	for method := range i.Methods() {
		names = append(names, method.Name())
		ours = ours || !method.Exported()
		if method.Exported() {
			r.add("method (%s) %s%s", name, method.Name(), r.signature(method))
		}
	}
	if ours {
		r.add("type %s interface, which only this package implements", name)
		return
	}
	r.add("type %s interface { %s }", name, strings.Join(names, "; "))
}

func (r *record) signature(f *types.Func) string {
	return strings.TrimPrefix(r.text(f.Signature()), "func")
}

func (r *record) text(t types.Type) string {
	return types.TypeString(nameless(t), func(p *types.Package) string {
		if p == r.pkg {
			return ""
		}
		return p.Path()
	})
}

// nameless leaves out how parameters are called: callers do not see that.
func nameless(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Pointer:
		return types.NewPointer(nameless(t.Elem()))
	case *types.Slice:
		return types.NewSlice(nameless(t.Elem()))
	case *types.Signature:
		if t.TypeParams().Len() > 0 {
			return t // a type parameter belongs to one signature
		}
		return types.NewSignatureType(nil, nil, nil,
			namelessAll(t.Params()), namelessAll(t.Results()), t.Variadic())
	}
	return t
}

func namelessAll(vars *types.Tuple) *types.Tuple {
	var all []*types.Var
	for v := range vars.Variables() {
		all = append(all, types.NewParam(v.Pos(), v.Pkg(), "", nameless(v.Type())))
	}
	return types.NewTuple(all...)
}
