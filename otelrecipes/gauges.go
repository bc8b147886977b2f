package otelrecipes

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/zkrecipes/recipes"
)

// gauges are what is asked for when metrics are collected.
type gauges struct {
	waitAge, holdAge, remaining, disconnected metric.Float64ObservableGauge
	connected                                 metric.Int64ObservableGauge
}

func newGauges(m metric.Meter) (g gauges, err error) {
	var errs [5]error
	g.waitAge, errs[0] = m.Float64ObservableGauge(waitAge, metric.WithUnit("s"),
		metric.WithDescription("How long the oldest acquisition has waited; 0: none."))
	g.holdAge, errs[1] = m.Float64ObservableGauge(holdAge, metric.WithUnit("s"),
		metric.WithDescription("How long the oldest hold has lasted; 0: there is none."))
	g.remaining, errs[2] = m.Float64ObservableGauge(remaining, metric.WithUnit("s"),
		metric.WithDescription("When the first hold is lost unless ZooKeeper answers."))
	g.connected, errs[3] = m.Int64ObservableGauge(connected,
		metric.WithUnit("{connection}"),
		metric.WithDescription("1 while all clients are connected, else 0."))
	g.disconnected, errs[4] = m.Float64ObservableGauge(disconnected, metric.WithUnit("s"),
		metric.WithDescription("For how long a client has been disconnected; 0: none."))
	return g, errors.Join(errs[:]...)
}

// A group is all Observers of a provider. They show their gauges together: of two that
// observe the same attributes the provider keeps only the last.
type group struct {
	gauges
	mu  sync.Mutex // guards all
	all []*Observer
}

// groups are those of all providers, each for as long as the process runs. groupsMu
// guards it.
var (
	groupsMu sync.Mutex
	groups   = map[metric.MeterProvider]*group{}
)

// joinGroup has the gauges of an Observer shown.
func (o *Observer) joinGroup(m metric.Meter) error {
	groupsMu.Lock()
	defer groupsMu.Unlock()
	isKey := reflect.ValueOf(o.meters).Comparable()
	var g *group
	if isKey {
		g = groups[o.meters]
	}
	if g == nil {
		var err error
		if g, err = newGroup(m); err != nil {
			return err
		}
	}
	if isKey {
		groups[o.meters] = g
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = append(g.all, o)
	return nil
}

func newGroup(m metric.Meter) (*group, error) {
	gauges, err := newGauges(m)
	if err != nil {
		return nil, err
	}
	g := &group{gauges: gauges}
	_, err = m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		g.mu.Lock()
		all := slices.Clone(g.all)
		g.mu.Unlock()
		g.observeLocks(to, all)
		g.observeSessions(to, all)
		return nil
	}, g.waitAge, g.holdAge, g.remaining, g.connected, g.disconnected)
	return g, err
}

// observeLocks shows the ages of every lock that was seen, so that they return to 0, and
// the time that remains of those that are held.
func (g *group) observeLocks(to metric.Observer, all []*Observer) {
	now := time.Now()
	waits, holds, left := ages{}, ages{}, map[attribute.Distinct]time.Duration{}
	locks := map[attribute.Distinct]attribute.Set{}
	var held []hold
	for _, o := range all {
		o.mu.Lock()
		maps.Copy(locks, o.locks)
		held = slices.AppendSeq(held, maps.Values(o.holds))
		for _, w := range o.waits {
			waits.add(w.lock, now.Sub(w.joined[0].at))
		}
		o.mu.Unlock()
	}
	for _, h := range held {
		holds.add(h.lock, now.Sub(h.since))
		until := h.until()
		if until.IsZero() {
			continue
		}
		of := h.lock.Equivalent()
		remains := max(until.Sub(now), 0)
		if least, known := left[of]; known {
			remains = min(remains, least)
		}
		left[of] = remains
	}
	for of, lock := range locks {
		attributes := metric.WithAttributeSet(lock)
		to.ObserveFloat64(g.waitAge, waits[of].Seconds(), attributes)
		to.ObserveFloat64(g.holdAge, holds[of].Seconds(), attributes)
		if remains, known := left[of]; known {
			to.ObserveFloat64(g.remaining, remains.Seconds(), attributes)
		}
	}
}

// ages are the greatest age of each lock.
type ages map[attribute.Distinct]time.Duration

func (a ages) add(lock attribute.Set, age time.Duration) {
	a[lock.Equivalent()] = max(a[lock.Equivalent()], age)
}

// observeSessions shows the connections; nothing while there is no client.
func (g *group) observeSessions(to metric.Observer, all []*Observer) {
	sets := map[attribute.Distinct]attribute.Set{}
	down := map[attribute.Distinct]time.Time{} // since when; zero: all are connected
	for _, o := range all {
		o.mu.Lock()
		since, known := o.sessions.down()
		o.mu.Unlock()
		if known {
			set := attribute.NewSet(slices.Clone(o.attributes)...)
			of := set.Equivalent()
			sets[of], down[of] = set, earliest(down[of], since)
		}
	}
	for of, since := range down {
		attributes := metric.WithAttributeSet(sets[of])
		connected, disconnected := int64(1), 0.
		if !since.IsZero() {
			connected, disconnected = 0, time.Since(since).Seconds()
		}
		to.ObserveInt64(g.connected, connected, attributes)
		to.ObserveFloat64(g.disconnected, disconnected, attributes)
	}
}

// earliest returns the first of two times of which the zero one is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// sessions are those of the clients that are not closed, as their events tell. An event
// names a session and no client: one that has expired becomes the next new one, of
// whichever client.
type sessions struct {
	since   map[int64]time.Time // disconnected since then; zero: connected
	expired []time.Time         // without a new session yet, disconnected since then
}

func newSessions() sessions { return sessions{since: map[int64]time.Time{}} }

func (s *sessions) change(e recipes.SessionEvent, now time.Time) {
	since, known := s.since[e.Session]
	switch e.Kind {
	case recipes.SessionConnected:
		if !known && len(s.expired) > 0 {
			s.expired = s.expired[1:]
		}
		s.since[e.Session] = time.Time{}
	case recipes.SessionDisconnected:
		s.since[e.Session] = now
	case recipes.SessionExpired:
		delete(s.since, e.Session)
		if since.IsZero() {
			since = now
		}
		s.expired = append(s.expired, since)
	case recipes.SessionClosed:
		delete(s.since, e.Session)
		if !known && len(s.expired) > 0 {
			s.expired = s.expired[1:]
		}
	}
}

// down returns since when the first of the clients has been disconnected, zero if none
// is; known is whether there is a client.
func (s *sessions) down() (first time.Time, known bool) {
	all := slices.AppendSeq(slices.Clone(s.expired), maps.Values(s.since))
	for _, since := range all {
		first = earliest(first, since)
	}
	return first, len(all) > 0
}
