package pages_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// matches are the first groups of all matches in the files of a pattern below the root.
func matches(t *testing.T, files string, pattern *regexp.Regexp) (found []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, files))
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
	}
	require.NotEmpty(t, found, files)
	return found
}

// definition is one that a model is checked with. One that sets its bounds, or chooses a
// kind of run, plants nothing.
var (
	definition = regexp.MustCompile(`-D(\S+)`)
	bound      = regexp.MustCompile(
		`^(ROUNDS\d|FAULTS|CANCELS|HALF|WITHIN)=|^PERIOD=1$|` +
			`^(PINGS|STILL|CALM|LATE_EVENTS)$`,
	)
)

// refuters are what scripts/model.sh plants, as the page writes it.
func refuters(t *testing.T) (found []string) {
	t.Helper()
	checks := regexp.MustCompile(`(?m)^\s+'refuted ([^']+)'`)
	seen := map[string]bool{}
	for _, check := range matches(t, "scripts/model.sh", checks) {
		model, _, _ := strings.Cut(check, " ")
		planted := 0
		for _, d := range definition.FindAllStringSubmatch(check, -1) {
			if bound.MatchString(d[1]) {
				continue
			}
			planted++
			if name := model + ": " + d[1]; !seen[name] {
				seen[name] = true
				found = append(found, name)
			}
		}
		require.Equal(t, 1, planted, "defects in %q", check)
	}
	return found
}

// The table of planted defects names all that are planted, and nothing else.
func TestThePlantedDefects(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/appendix/planted-defects.md"))
	require.NoError(t, err)
	var model, simulator, order, traces []string
	for _, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 || cells[0] == "defect" || strings.HasPrefix(cells[0], "-") {
			continue
		}
		if cells[1] != "no" {
			model = append(model, strings.Trim(cells[1], "`"))
		}
		found, inTraces := strings.CutSuffix(cells[2], ", traces")
		if inTraces {
			traces = append(traces, cells[0])
		}
		switch found {
		case "no":
		case "yes":
			simulator = append(simulator, cells[0])
		default:
			t.Errorf("neither yes nor no: %s", line)
		}
		switch cells[3] {
		case "no":
		case "yes":
			order = append(order, cells[0])
		default:
			order = append(order, cells[3])
		}
		require.NotEqual(t, []string{"no", "no", "no"}, cells[1:], line)
	}
	require.ElementsMatch(t, refuters(t), model)
	planted := regexp.MustCompile(`plant\.New\("([^"]+)"`)
	require.ElementsMatch(
		t, matches(t, "internal/simulator/defects_test.go", planted), simulator,
	)
	require.ElementsMatch(t, matches(t, "internal/simulator/trace_defects_test.go",
		regexp.MustCompile(`(?m)^\t\{"([^"]+)", \d+\},$`)), traces)
	require.ElementsMatch(t, matches(t, "internal/order/model_faults_test.go",
		regexp.MustCompile(`(?:planted\(\d+, |name:\s+)"([^"]+)"`)), order)
}

// Each line of a model that takes a guard out is checked: what scripts/model.sh does not
// define is not in a model.
func TestEachRefuterIsChecked(t *testing.T) {
	t.Parallel()
	checked := map[string]bool{}
	for _, r := range refuters(t) {
		checked[r] = true
	}
	planted := regexp.MustCompile(`#ifn?def (\w+) /\* refuter|!defined\((\w+)\)`)
	for _, model := range []string{"session", "queue", "kept"} {
		text, err := os.ReadFile(filepath.Join(root, "test", "model", model+".pml"))
		require.NoError(t, err)
		for _, m := range planted.FindAllStringSubmatch(string(text), -1) {
			require.True(t, checked[model+": "+m[1]+m[2]], "%s: %s%s", model, m[1], m[2])
		}
		for name := range checked {
			of, define, _ := strings.Cut(name, ": ")
			define, _, _ = strings.Cut(define, "=")
			if of == model {
				require.Regexp(t, `\b`+define+`\b`, string(text), name)
			}
		}
	}
}
