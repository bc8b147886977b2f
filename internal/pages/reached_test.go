package pages_test

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A span is some statements of a source that are run one after the other.
type span struct {
	line, column, endLine, endColumn int
	reached                          bool
}

// reached reads a profile of coverage, the spans of each package.
func reached(t *testing.T, profile string) map[string][]span {
	t.Helper()
	text, err := os.ReadFile(profile)
	require.NoError(t, err)
	found := map[string][]span{}
	for line := range strings.Lines(string(text)) {
		file, numbers, ok := strings.Cut(line, ".go:")
		if !ok {
			continue // the mode
		}
		var s span
		var statements, count int
		_, err := fmt.Sscanf(numbers, "%d.%d,%d.%d %d %d",
			&s.line, &s.column, &s.endLine, &s.endColumn, &statements, &count)
		require.NoError(t, err, line)
		s.reached = count > 0
		found[path.Base(file)] = append(found[path.Base(file)], s)
	}
	return found
}

// requireReached fails unless all of the block was run but what passes an error on.
func (s *source) requireReached(t *testing.T, spans []span) {
	t.Helper()
	ran := false
	for _, c := range spans {
		if c.line > s.last || c.endLine < s.first {
			continue // the harness's
		}
		ran = ran || c.reached
		if text := s.cut(c); !c.reached && !passesErrorOn.MatchString(text) {
			t.Errorf("%s: the harness %s does not reach:\n%s",
				s.origin(max(c.line, s.first)), s.harness, text)
		}
	}
	require.True(t, ran, "%s: nothing of it was run", s.where())
}

// passesErrorOn is what need not be reached: there is nothing in it that could be wrong.
var passesErrorOn = regexp.MustCompile(`^(return err|(t|log)\.Fatal\(.*\))$`)

var comment = regexp.MustCompile(`(?m)(^|\s)//.*$`)

// cut is the text of some statements, without comments and the braces around them.
func (s *source) cut(c span) string {
	lines := strings.Split(s.code, "\n")[c.line-1 : c.endLine]
	lines[len(lines)-1] = lines[len(lines)-1][:c.endColumn-1]
	lines[0] = lines[0][c.column-1:]
	text := comment.ReplaceAllString(strings.Join(lines, "\n"), "")
	return strings.Trim(text, "{} \t\n")
}
