package main

import (
	_ "embed"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed dashboard.json
var dashboard []byte

// A query is one of the dashboard.
type query struct{ expr, legend string }

// queriesOf returns the queries of the dashboard's panels, and of its variables those of
// Prometheus.
func queriesOf(t *testing.T) (all []query) {
	t.Helper()
	var d struct {
		Templating struct {
			List []struct{ Type, Query string }
		}
		Panels []struct {
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	require.NoError(t, json.Unmarshal(dashboard, &d))
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			all = append(all, query{expr: v.Query})
		}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, query{target.Expr, target.LegendFormat})
		}
	}
	require.Greater(t, len(all), 10)
	return all
}

var (
	aMetric  = regexp.MustCompile(`zookeeper_\w+`)
	aSample  = regexp.MustCompile(`(?m)^(zookeeper_\w+)(?:\{(.*)\})? `)
	aLabel   = regexp.MustCompile(`(\w+)="`)
	aGroup   = regexp.MustCompile(`\bby \(([^)]*)\)`)
	aMatcher = regexp.MustCompile(`[{,]\s*(\w+)(?:=~|!~|!=|=)"`)
	aLegend  = regexp.MustCompile(`\{\{(\w+)\}\}`)
	ofLocks  = regexp.MustCompile(`^zookeeper_(lock_|leader)`)
)

// first returns what the first group of a pattern has matched.
func first(pattern *regexp.Regexp, text string) (found []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// groupsOf returns the labels by which an expression groups, for each of its sums.
func groupsOf(expr string) (groups [][]string) {
	for _, list := range first(aGroup, expr) {
		groups = append(groups, strings.Split(list, ", "))
	}
	return groups
}

// metricsOf returns the metrics that the dashboard asks for.
func metricsOf(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, q := range queriesOf(t) {
		found = append(found, aMetric.FindAllString(q.expr, -1)...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// labelsOf returns which labels each metric of a scrape has, and those that Prometheus
// adds to all.
func labelsOf(scraped string) map[string][]string {
	found := map[string][]string{}
	for _, m := range aSample.FindAllStringSubmatch(scraped, -1) {
		found[m[1]] = append(found[m[1]], first(aLabel, m[2])...)
	}
	for name, labels := range found {
		found[name] = append(labels, "job", "instance")
	}
	return found
}

// requireLabels fails the test if an expression asks for a label that its metrics do not
// have.
func requireLabels(t *testing.T, has map[string][]string, expr string) {
	t.Helper()
	asked := first(aMatcher, expr)
	for _, group := range groupsOf(expr) {
		asked = append(asked, group...)
	}
	metrics := aMetric.FindAllString(expr, -1)
	require.NotEmpty(t, metrics, expr)
	for _, metric := range metrics {
		require.Contains(t, slices.Collect(maps.Keys(has)), metric, expr)
		require.Subset(t, has[metric], asked, expr)
	}
}

// The dashboard and the alerts ask for metrics and labels that there are. What the
// dashboard shows of locks is told apart by recipe and name, and its legends have no
// label that the sum has dropped.
func TestTheDashboardAsksForWhatThereIs(t *testing.T) {
	has := labelsOf(scrapeOfAll(t))
	for _, q := range queriesOf(t) {
		requireLabels(t, has, q.expr)
		for _, group := range groupsOf(q.expr) {
			require.Subset(t, group, first(aLegend, q.legend), q.expr)
			if ofLocks.MatchString(aMetric.FindString(q.expr)) {
				require.Subset(t, group, []string{"recipe", "name"}, q.expr)
				require.Subset(t, first(aLegend, q.legend), []string{"recipe", "name"})
			}
		}
	}
	for alert, expr := range alertsOf(t) {
		requireLabels(t, has, expr)
		for _, label := range first(aReference, annotationOf(t, alert)) {
			if groups := groupsOf(expr); len(groups) > 0 {
				require.Contains(t, groups[0], label, alert)
			} else {
				require.Contains(t, has[aMetric.FindString(expr)], label, alert)
			}
		}
	}
}

//go:embed alerts.yml
var alerts string

var (
	anAlert    = regexp.MustCompile(`(?m)^      - alert: (\w+)\n`)
	anExpr     = regexp.MustCompile(`(?m)^        expr: (>-\n(?:          .*\n)+|.*\n)`)
	aSummary   = regexp.MustCompile(`(?m)^          summary: (.*)$`)
	aReference = regexp.MustCompile(`\$labels\.(\w+)`)
)

// ruleOf is the text of the rule of an alert.
func ruleOf(t *testing.T, alert string) string {
	t.Helper()
	_, rule, found := strings.Cut(alerts, "- alert: "+alert+"\n")
	require.True(t, found, alert)
	rule, _, _ = strings.Cut(rule, "      - alert: ")
	return rule
}

func annotationOf(t *testing.T, alert string) string {
	t.Helper()
	found := first(aSummary, ruleOf(t, alert))
	require.Len(t, found, 1, alert)
	return found[0]
}

// alertsOf returns the expressions of alerts.yml, by their alerts. (Prometheus' own
// promtool checks its syntax; it is no dependency that a test is worth.)
func alertsOf(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range first(anAlert, alerts) {
		exprs := first(anExpr, ruleOf(t, name))
		require.Len(t, exprs, 1, name)
		expr := strings.TrimPrefix(exprs[0], ">-")
		found[name] = strings.Join(strings.Fields(expr), " ")
	}
	require.Greater(t, len(found), 5)
	return found
}

// A comparison of a metric that is gone is gone as well: of an election whose candidates
// are all dead nothing would be shown, and no alert would fire.
func TestAnElectionWithoutCandidatesHasNoLeader(t *testing.T) {
	var asked []string
	for _, q := range queriesOf(t) {
		if strings.Contains(q.expr, "bool") {
			asked = append(asked, q.expr)
		}
	}
	require.Len(t, asked, 1)
	require.Regexp(t, ` or .*last_over_time\(zookeeper_leader\b.*\[1d\]\)`, asked[0])
	require.Regexp(t, `^absent\(zookeeper_leader\{[^}]*\} > 0\)$`,
		alertsOf(t)["NobodyLeads"])
}
