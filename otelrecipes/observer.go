package otelrecipes

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/zkrecipes/recipes"
)

const scope = "github.com/zkrecipes/recipes/otelrecipes"

// An Observer turns the events that it receives into metrics and spans. One is enough for
// a process, for any number of locks and clients. Its methods are safe for concurrent
// use.
type Observer struct {
	*settings
	instruments
	tracer trace.Tracer

	mu       sync.Mutex       // guards what follows; not held while code of recipes runs
	waits    map[uint64]*wait // by the acquisition
	holds    map[holdKey]hold
	locks    map[attribute.Distinct]attribute.Set // all that were seen
	sessions sessions
}

// A wait is an acquisition that stands in a queue.
type wait struct {
	lock   attribute.Set
	joined []joining // not empty
}

// A hold is one that has not ended.
type hold struct {
	lock  attribute.Set
	since time.Time
	until func() time.Time
	span  trace.Span
}

// A joining is one place that a wait got in the queue. It may lose it, and get another.
type joining struct {
	at    time.Time
	ahead int
}

// A holdKey names a hold. Leases that are acquired together share the acquisition, and
// holds of one cached queue entry the znode.
type holdKey struct {
	acquisition uint64
	node        string
}

// NewObserver returns an Observer. Pass its Lock to recipes.WithObserver and its Session
// to recipes.WithClientObserver.
func NewObserver(opts ...Option) (*Observer, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, fmt.Errorf("otelrecipes: %w", err)
	}
	meter := s.meters.Meter(scope)
	i, err := newInstruments(meter)
	if err != nil {
		return nil, fmt.Errorf("otelrecipes: make the instruments: %w", err)
	}
	o := &Observer{
		settings: s, instruments: i, tracer: s.tracers.Tracer(scope),
		waits: map[uint64]*wait{}, holds: map[holdKey]hold{},
		locks: map[attribute.Distinct]attribute.Set{}, sessions: newSessions(),
	}
	if err := o.joinGroup(meter); err != nil {
		return nil, fmt.Errorf("otelrecipes: make the gauges: %w", err)
	}
	return o, nil
}

// Lock receives a step of an acquisition; pass it to recipes.WithObserver. A function
// that calls several observers must call this one last: if one of them panics after it,
// the acquisition ends without a further event, and remains in the gauges.
func (o *Observer) Lock(ctx context.Context, e recipes.Event) {
	switch e.Kind {
	case recipes.EventQueued:
		o.queued(ctx, e)
	case recipes.EventAcquired:
		o.waited(ctx, e)
		o.acquired(ctx, e)
	case recipes.EventTimedOut:
		o.waited(ctx, e)
		o.timeouts.Add(ctx, 1, o.with(e))
	case recipes.EventFailed:
		o.waited(ctx, e)
	case recipes.EventReleased:
		o.ended(ctx, e)
	case recipes.EventLost:
		o.losses.Add(ctx, 1, o.with(e, attribute.String("reason", reason(e.Err))))
		o.ended(ctx, e)
	}
}

// meet takes note of a lock that may be new, and returns its attributes. It shows the
// counters of what goes wrong before it does: the rate of a series that begins with its
// first loss does not have that one in it.
func (o *Observer) meet(ctx context.Context, e recipes.Event) attribute.Set {
	lock := attribute.NewSet(o.describe(e)...)
	o.mu.Lock()
	_, known := o.locks[lock.Equivalent()]
	o.locks[lock.Equivalent()] = lock
	o.mu.Unlock()
	if known {
		return lock
	}
	o.timeouts.Add(ctx, 0, o.with(e))
	for _, r := range reasons {
		o.losses.Add(ctx, 0, o.with(e, attribute.String("reason", r.reason)))
	}
	return lock
}

// Session receives a change of a session; pass it to recipes.WithClientObserver.
func (o *Observer) Session(e recipes.SessionEvent) {
	o.mu.Lock()
	o.sessions.change(e, time.Now())
	o.mu.Unlock()
	o.transitions.Add(context.Background(), 1, metric.WithAttributes(o.attributes...),
		metric.WithAttributes(attribute.String("state", e.Kind.String())))
}

// describe returns the attributes of an event's lock. All have a name, which may be "".
func (o *Observer) describe(
	e recipes.Event, more ...attribute.KeyValue,
) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, len(o.attributes)+2+len(more))
	all = append(append(all, o.attributes...), attribute.String("recipe", e.Recipe),
		attribute.String("name", o.name(e.Path)))
	return append(all, more...)
}

func (o *Observer) with(
	e recipes.Event, more ...attribute.KeyValue,
) metric.MeasurementOption {
	return metric.WithAttributes(o.describe(e, more...)...)
}

func elects(e recipes.Event) bool { return strings.HasPrefix(e.Recipe, "leader ") }

func (o *Observer) queued(ctx context.Context, e recipes.Event) {
	j := joining{at: time.Now(), ahead: e.Ahead}
	lock := o.meet(ctx, e)
	o.mu.Lock()
	w, rejoined := o.waits[e.ID]
	if !rejoined {
		w = &wait{lock: lock}
		o.waits[e.ID] = w
	}
	w.joined = append(w.joined, j)
	o.mu.Unlock()
	if rejoined { // it has lost its place, and has a new one
		return
	}
	o.waiters.Add(ctx, 1, o.with(e))
	if elects(e) {
		o.leader.Add(ctx, 0, o.with(e))
	}
}

// waited ends a wait, which need not have come to a queue.
func (o *Observer) waited(ctx context.Context, e recipes.Event) {
	now := time.Now()
	o.mu.Lock()
	w := o.waits[e.ID]
	delete(o.waits, e.ID)
	o.mu.Unlock()
	if w != nil {
		o.waiters.Add(ctx, -1, o.with(e))
	}
	outcome := attribute.String("outcome", e.Kind.String())
	o.waitDuration.Record(ctx, e.Elapsed.Seconds(), o.with(e, outcome))
	_, span := o.tracer.Start(ctx, "zookeeper.lock.wait",
		trace.WithTimestamp(now.Add(-e.Elapsed)),
		trace.WithAttributes(o.describe(e, outcome)...))
	if w != nil {
		for _, j := range w.joined {
			span.AddEvent("queued", trace.WithTimestamp(j.at),
				trace.WithAttributes(attribute.Int("ahead", j.ahead)))
		}
	}
	if e.Kind == recipes.EventAcquired {
		span.SetAttributes(attribute.Int64("token", e.Token))
	}
	fail(span, now, e.Err)
	span.End(trace.WithTimestamp(now))
}

func (o *Observer) acquired(ctx context.Context, e recipes.Event) {
	_, span := o.tracer.Start(ctx, "zookeeper.lock.hold", trace.WithAttributes(
		o.describe(e, attribute.Int64("token", e.Token))...))
	h := hold{lock: o.meet(ctx, e), since: time.Now(), until: e.Until, span: span}
	o.mu.Lock()
	o.holds[holdKey{e.ID, e.Node}] = h
	o.mu.Unlock()
	o.holders.Add(ctx, 1, o.with(e))
	if elects(e) {
		o.leader.Add(ctx, 1, o.with(e))
	}
}

// ended ends a hold. A loss that shows only behind the release is no second end.
func (o *Observer) ended(ctx context.Context, e recipes.Event) {
	key, now := holdKey{e.ID, e.Node}, time.Now()
	o.mu.Lock()
	h, held := o.holds[key]
	delete(o.holds, key)
	o.mu.Unlock()
	if !held {
		return
	}
	o.holdDuration.Record(ctx, e.Elapsed.Seconds(), o.with(e))
	o.holders.Add(ctx, -1, o.with(e))
	if elects(e) {
		o.leader.Add(ctx, -1, o.with(e))
	}
	if e.Kind == recipes.EventLost {
		h.span.SetAttributes(attribute.String("reason", reason(e.Err)))
	}
	fail(h.span, now, e.Err)
	h.span.End(trace.WithTimestamp(now))
}

// fail says on a span what went wrong, if anything did.
func fail(span trace.Span, at time.Time, err error) {
	if err != nil {
		span.RecordError(err, trace.WithTimestamp(at))
		span.SetStatus(codes.Error, err.Error())
	}
}
