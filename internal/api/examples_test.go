package api_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These need no example.
var withoutExample = map[string]string{
	"recipes.ClientOption":     "the options have examples",
	"recipes.DoOption":         "WaitAtMost is in one",
	"recipes.EventKind":        "ExampleWithObserver shows its values",
	"recipes.Participant":      "ExampleInspect shows some",
	"recipes.SessionEventKind": "ExampleWithClientObserver shows its values",
	"recipes.SASLExchange":     "a mechanism returns one, see ExampleWithSASL",
	"recipes.SessionConn":      "it is for wrappers, see ExampleConn",

	"zktest.TB":        "a *testing.T is one",
	"zktest.Direction": "ExampleLink shows its values",
	"zktest.Option":    "the options have examples",

	"otelrecipes.Option": "the options have examples",
	"kerberos.Option":    "the options have examples",
}

// Each function and type that the library exports has an example, or is used in one. An
// identifier that another example declares or names by chance counts as well: this test
// is for what was forgotten.
func TestEverythingHasAnExample(t *testing.T) {
	for dir, files := range map[string]string{
		"recipes": "*_test.go", "zktest": "zktest/*_test.go",
		"otelrecipes": "otelrecipes/*_test.go",
		"gocronlock":  "adapters/gocronlock/*_test.go",
		"gooselock":   "adapters/gooselock/*_test.go",
		"kerberos":    "kerberos/*_test.go",
	} {
		shown := shownIn(t, filepath.Join(root, files))
		for _, name := range exported(t, dir) {
			reason, excepted := withoutExample[dir+"."+name]
			switch {
			case excepted && shown[name]:
				t.Errorf("%s.%s is an exception, and has an example: %s",
					dir, name, reason)
			case !excepted && !shown[name]:
				t.Errorf("%s.%s: no example shows it", dir, name)
			}
		}
	}
}

// exported returns the functions and types of a record.
func exported(t *testing.T, record string) []string {
	t.Helper()
	var names []string
	for _, line := range recorded(t, filepath.Join(root, records, record+".txt")) {
		kind, rest, _ := strings.Cut(line, " ")
		name := identifier.FindString(rest)
		if kind == "func" || kind == "type" {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

var identifier = regexp.MustCompile(`^\w+`)

// shownIn returns the identifiers in the names and bodies of examples.
func shownIn(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Example") {
				continue
			}
			subject, _, _ := strings.Cut(strings.TrimPrefix(f.Name.Name, "Example"), "_")
			shown[subject] = subject != ""
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					shown[id.Name] = true
				}
				return true
			})
		}
	}
	return shown
}
