// Package metrics has the metrics of a survey, for Prometheus.
package metrics

import (
	"cmp"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// other is the path of all locks beyond those that have a path of their own.
const other = "other"

// Metrics are those of a survey. It is a prometheus.Collector.
type Metrics struct {
	survey *survey.Survey
	most   int // paths
	roots  []string

	held, waited *prometheus.HistogramVec
	granted      *prometheus.CounterVec

	mu     sync.Mutex           // guards what follows
	named  map[string]time.Time // when a path that has a label was last known
	groups map[string]bool      // labels of those with registrations, now or before
}

// buckets are those of holds and waits, in seconds.
var buckets = []float64{.01, .1, .5, 1, 5, 15, 60, 300, 900, 3600, 14400}

// ofLock are the labels of what is of a lock.
var ofLock = []string{"path", "recipe"}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// What is told of the state at a scrape.
var (
	descHolders = describe("zklock_holders", "Participants that hold.", ofLock...)
	descWaiters = describe("zklock_waiters", "Participants that wait.", ofLock...)
	descHeld    = describe("zklock_oldest_hold_seconds",
		"For how long the oldest holder holds.", ofLock...)
	descWait = describe("zklock_longest_wait_seconds",
		"For how long the first of those who wait has been waiting.", ofLock...)
	descMissed = describe("zklock_missed_participants_total",
		"Participants that came and left unseen.", ofLock...)
	descFindings = describe("zklock_findings", "What is wrong, as zklock doctor says.",
		"kind")
	descLocks      = describe("zklock_locks", "Locks that are known.")
	descRegistered = describe("zklock_registrations",
		"Ephemeral znodes that register something, by their parent.", "path")
	descAge = describe("zklock_state_age_seconds",
		"For how long what is told here may be out of date: 0 while ZooKeeper answers.")
	descWalk = describe("zklock_last_walk_timestamp_seconds",
		"When the last walk through the tree ended, by the servers' clock.")
	descRequests = describe("zklock_requests_total", "Requests sent to ZooKeeper.",
		"operation")
)

// New returns metrics with a label for at most that many paths. The roots come
// first, then whoever comes first: nobody takes a path's label by creating others.
func New(most int, roots []string) *Metrics {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: buckets,
		}, ofLock)
	}
	return &Metrics{
		most: most, roots: roots, named: map[string]time.Time{},
		groups: map[string]bool{},
		held:   histogram("zklock_held_seconds", "How long ended holds lasted."),
		waited: histogram("zklock_waited_seconds", "How long those waited who now hold."),
		granted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "zklock_handovers_total", Help: "Hand-overs that were seen.",
		}, ofLock),
	}
}

// Seen takes note of an event.
func (m *Metrics) Seen(e survey.Event) {
	labels := []string{m.label(e.Path), e.Recipe}
	if e.Kind == survey.Granted {
		m.granted.WithLabelValues(labels...).Inc()
		m.waited.WithLabelValues(labels...).Observe(e.Waited().Seconds())
	} else if held := e.HeldFor(); held >= 0 {
		m.held.WithLabelValues(labels...).Observe(held.Seconds())
	}
}

// label is the label of a path: the path, in which everything can be seen, or "other".
func (m *Metrics) label(path string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.named[path]
	if !known && !slices.Contains(m.roots, path) && len(m.named) >= m.most {
		return other
	}
	m.named[path] = time.Now()
	return text.Printable(path)
}

// forget gives up the labels of paths that have gone, so that others can have them.
func (m *Metrics) forget(state survey.State) {
	known := map[string]bool{}
	for _, l := range state.Locks {
		known[l.Path] = true
	}
	for _, r := range state.Registrations {
		known[zkpath.Parent(r.Path)] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for path, last := range m.named {
		if !known[path] && time.Since(last) > time.Hour {
			delete(m.named, path)
			delete(m.groups, text.Printable(path))
			labels := prometheus.Labels{"path": text.Printable(path)}
			m.held.DeletePartialMatch(labels)
			m.waited.DeletePartialMatch(labels)
			m.granted.DeletePartialMatch(labels)
		}
	}
}

// Handler returns what answers a scrape with the metrics of a survey.
func (m *Metrics) Handler(of *survey.Survey, log *slog.Logger) http.Handler {
	m.survey = of
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
	})
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descHolders, descWaiters, descHeld, descWait, descMissed, descFindings, descLocks,
		descRegistered, descAge, descWalk, descRequests,
	} {
		to <- d
	}
	m.held.Describe(to)
	m.waited.Describe(to)
	m.granted.Describe(to)
}

// A total is what all locks with the same labels are together.
type total struct {
	labels           []string
	holders, waiters int
	held, wait       time.Duration
	missed           uint64
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	state := m.survey.State()
	m.forget(state)
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	count := func(d *prometheus.Desc, value uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value),
			labels...)
	}
	for _, t := range m.totals(state) {
		gauge(descHolders, float64(t.holders), t.labels...)
		gauge(descWaiters, float64(t.waiters), t.labels...)
		gauge(descHeld, t.held.Seconds(), t.labels...)
		gauge(descWait, t.wait.Seconds(), t.labels...)
		count(descMissed, t.missed, t.labels...)
	}
	for path, n := range m.registrations(state) {
		gauge(descRegistered, float64(n), path)
	}
	of := map[survey.FindingKind]int{}
	for _, f := range state.Findings {
		of[f.Kind]++
	}
	for _, kind := range survey.FindingKinds {
		gauge(descFindings, float64(of[kind]), string(kind))
	}
	gauge(descLocks, float64(len(state.Locks)))
	age := time.Duration(0)
	if !state.Outdated.IsZero() {
		age = state.At.Sub(state.Outdated)
	}
	gauge(descAge, age.Seconds())
	if !state.Walked.IsZero() {
		gauge(descWalk, float64(state.Walked.UnixMilli())/1000)
	}
	for op, n := range m.survey.Requests() {
		count(descRequests, n, survey.Op(op).String())
	}
	m.held.Collect(to)
	m.waited.Collect(to)
	m.granted.Collect(to)
}

// registrations counts them by the label of the path that they are in. A path that had
// some returns to 0.
func (m *Metrics) registrations(state survey.State) map[string]int {
	counts := map[string]int{}
	for _, r := range state.Registrations {
		counts[m.label(zkpath.Parent(r.Path))]++
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for path := range counts {
		m.groups[path] = true
	}
	for path := range m.groups {
		counts[path] += 0
	}
	return counts
}

// totals sums what has the same labels.
func (m *Metrics) totals(state survey.State) []*total {
	by := map[string]*total{}
	for _, l := range state.Locks {
		labels := []string{m.label(l.Path), l.Recipe}
		key := strings.Join(labels, "\x00")
		t := by[key]
		if t == nil {
			t = &total{labels: labels}
			by[key] = t
		}
		waiting := l.Waiters()
		t.holders += len(l.Queue) + l.More - waiting
		t.waiters += waiting
		t.missed += l.Missed
		for _, p := range l.Queue {
			if p.State == queues.Holds && !p.Held.IsZero() {
				t.held = max(t.held, state.At.Sub(p.Held))
			} else if p.State == queues.Waits && !p.Since.IsZero() {
				t.wait = max(t.wait, state.At.Sub(p.Since))
			}
		}
	}
	all := make([]*total, 0, len(by))
	for _, t := range by {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *total) int {
		return cmp.Compare(a.labels[0]+a.labels[1], b.labels[0]+b.labels[1])
	})
	return all
}
