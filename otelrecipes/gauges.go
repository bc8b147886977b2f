package otelrecipes

import (
	"context"
	"errors"
	"maps"
	"slices"
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

func (o *Observer) registerGauges(m metric.Meter) error {
	g, err := newGauges(m)
	if err != nil {
		return err
	}
	_, err = m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		o.observeLocks(to, g)
		o.observeSessions(to, g)
		return nil
	}, g.waitAge, g.holdAge, g.remaining, g.connected, g.disconnected)
	return err
}

// observeLocks shows the ages of every lock that was seen, so that they return to 0, and
// the time that remains of those that are held.
func (o *Observer) observeLocks(to metric.Observer, g gauges) {
	now := time.Now()
	waits, holds, left := ages{}, ages{}, map[attribute.Distinct]time.Duration{}
	o.mu.Lock()
	locks, held := maps.Clone(o.locks), slices.Collect(maps.Values(o.holds))
	for _, w := range o.waits {
		waits.add(w.lock, now.Sub(w.joined[0].at))
	}
	o.mu.Unlock()
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
func (o *Observer) observeSessions(to metric.Observer, g gauges) {
	o.mu.Lock()
	since, known := o.sessions.down()
	o.mu.Unlock()
	if !known {
		return
	}
	attributes := metric.WithAttributes(o.attributes...)
	if since.IsZero() {
		to.ObserveInt64(g.connected, 1, attributes)
		to.ObserveFloat64(g.disconnected, 0, attributes)
		return
	}
	to.ObserveInt64(g.connected, 0, attributes)
	to.ObserveFloat64(g.disconnected, time.Since(since).Seconds(), attributes)
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
		if first.IsZero() || !since.IsZero() && since.Before(first) {
			first = since
		}
	}
	return first, len(all) > 0
}
