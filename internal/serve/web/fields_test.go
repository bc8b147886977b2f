package web

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/serve/survey"
)

// The page names each field of the JSON that programs read, and no others.
func TestThePageNamesEachField(t *testing.T) {
	page, err := os.ReadFile("../../../docs/serve.md")
	require.NoError(t, err)
	for object, of := range map[string]any{
		"`/api/locks`":            survey.State{},
		"`/api/locks?path=PATH`":  detail{},
		"a lock":                  survey.Lock{},
		"a participant":           survey.Participant{},
		"in `left`":               survey.Stay{},
		"a registration":          survey.Registration{},
		"a finding":               survey.Finding{},
		"event `granted`, `left`": survey.Event{},
		"event `state`":           pulse{},
	} {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(object) + ` \| (.*) \|$`).
			FindSubmatch(page)
		require.NotNil(t, row, object)
		var named []string
		for _, name := range regexp.MustCompile("`([^`]+)`").
			FindAllSubmatch(row[1], -1) {
			named = append(named, string(name[1]))
		}
		require.ElementsMatch(t, fieldsOf(reflect.TypeOf(of)), named, object)
	}
}

// fieldsOf are the names of a struct's fields in JSON. Those that end in 64 are only in
// what zklock ls prints.
func fieldsOf(of reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && !strings.HasSuffix(name, "64") {
			names = append(names, name)
		}
	}
	return names
}
