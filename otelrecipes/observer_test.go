package otelrecipes_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/otelrecipes"
	"github.com/zkrecipes/recipes/zktest"
)

const path = "/locks/orders"

// A scene is a process that is observed, and a server, in a bubble.
type scene struct {
	t        *testing.T
	cluster  *zktest.Cluster
	observer *otelrecipes.Observer
	opts     []otelrecipes.Option // of the observer
	reader   *sdkmetric.ManualReader
	spans    *tracetest.SpanRecorder
	tracer   trace.Tracer
}

// inBubble runs a test in virtual time.
func inBubble(
	t *testing.T, test func(*testing.T, *scene), opts ...otelrecipes.Option,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newScene(t, opts...)) })
}

func newScene(t *testing.T, opts ...otelrecipes.Option) *scene {
	t.Helper()
	s := &scene{
		t: t, cluster: zktest.Start(t), reader: sdkmetric.NewManualReader(),
		spans: tracetest.NewSpanRecorder(),
	}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))
	s.tracer = tracers.Tracer("test")
	s.opts = append(opts,
		otelrecipes.WithMeterProvider(
			sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.reader))),
		otelrecipes.WithTracerProvider(tracers))
	s.observeAnew()
	return s
}

// observeAnew has another observer with the same options from then on.
func (s *scene) observeAnew() {
	s.t.Helper()
	var err error
	s.observer, err = otelrecipes.NewObserver(s.opts...)
	require.NoError(s.t, err)
}

// connect returns a client that is observed, and its link.
func (s *scene) connect(name string) (*recipes.Client, *zktest.Link) {
	s.t.Helper()
	link := s.cluster.Link(name)
	client, err := recipes.Connect(
		s.t.Context(), strings.Join(s.cluster.Names(), ","), 10*time.Second,
		recipes.WithDialer(link.Dial), recipes.WithClientObserver(s.observer.Session),
	)
	require.NoError(s.t, err)
	s.t.Cleanup(func() {
		link.Heal()
		client.Close()
	})
	return client, link
}

func (s *scene) mutex(
	client *recipes.Client, opts ...recipes.Option,
) *recipes.InterProcessMutex {
	s.t.Helper()
	m, err := recipes.NewInterProcessMutex(
		client, path, append(opts, recipes.WithObserver(s.observer.Lock))...,
	)
	require.NoError(s.t, err)
	return m
}

// owner is a new one.
func (s *scene) owner() context.Context { return recipes.WithOwner(s.t.Context()) }

// metrics returns a line for each time series: its value, or of a histogram its count and
// sum.
func (s *scene) metrics() []string {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(s.t, s.reader.Collect(context.Background(), &all))
	var lines []string
	line := func(m metricdata.Metrics, of attribute.Set, value string) {
		var b strings.Builder
		for _, a := range of.ToSlice() {
			fmt.Fprintf(&b, " %s=%s", a.Key, a.Value.String())
		}
		name := strings.TrimPrefix(m.Name, "zookeeper.")
		lines = append(lines, fmt.Sprintf("%s [%s]%s: %s", name, m.Unit, &b, value))
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			require.True(s.t, strings.HasPrefix(m.Name, "zookeeper."), m.Name)
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					line(m, p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					line(m, p.Attributes, fmt.Sprint(p.Value))
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					line(m, p.Attributes, fmt.Sprintf("%.3f", p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					line(m, p.Attributes, fmt.Sprintf("%d times, %.3f", p.Count, p.Sum))
				}
			default:
				s.t.Fatalf("%s is a %T", m.Name, data)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// of leaves the lines of some metrics.
func of(lines []string, names ...string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(line, name+" ")
		})
	})
}

func TestWaitsAndHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		first, _ := s.connect("first")
		second, _ := s.connect("second")
		holder, waiter := s.mutex(first), s.mutex(second)
		holding := s.owner()
		require.NoError(t, holder.Acquire(holding))
		time.Sleep(time.Second)
		ctx, caller := s.tracer.Start(s.owner(), "caller")
		acquired := make(chan error, 1)
		go func() { acquired <- waiter.Acquire(ctx) }()
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{
			"lock.holders [{holder}] name= recipe=mutex: 1",
			"lock.waiters [{waiter}] name= recipe=mutex: 1",
		}, of(s.metrics(), "lock.holders", "lock.waiters"))
		require.NoError(t, holder.Release(holding))
		require.NoError(t, <-acquired)
		token := waiter.Hold(ctx).FencingToken()
		time.Sleep(4 * time.Second)
		require.NoError(t, waiter.Release(ctx))
		require.Equal(t, []string{
			"lock.hold.age [s] name= recipe=mutex: 0.000",
			"lock.hold.duration [s] name= recipe=mutex: 2 times, 7.000",
			"lock.holders [{holder}] name= recipe=mutex: 0",
			"lock.losses [{loss}] name= reason=closed recipe=mutex: 0",
			"lock.losses [{loss}] name= reason=hold expired recipe=mutex: 0",
			"lock.losses [{loss}] name= reason=out of touch recipe=mutex: 0",
			"lock.losses [{loss}] name= reason=session ended recipe=mutex: 0",
			"lock.losses [{loss}] name= reason=znode gone recipe=mutex: 0",
			"lock.timeouts [{timeout}] name= recipe=mutex: 0",
			"lock.wait.age [s] name= recipe=mutex: 0.000",
			"lock.wait.duration [s] name= outcome=acquired recipe=mutex: 2 times, 2.000",
			"lock.waiters [{waiter}] name= recipe=mutex: 0",
			"session.connected [{connection}]: 1",
			"session.disconnected [s]: 0.000",
			"session.transitions [{transition}] state=connected: 2",
		}, s.metrics())

		caller.End()
		var names []string
		for _, span := range s.spans.Ended() {
			if span.Parent().SpanID() != caller.SpanContext().SpanID() {
				continue
			}
			names = append(names, fmt.Sprintf("%s %v",
				span.Name(), span.EndTime().Sub(span.StartTime())))
			require.Contains(t, span.Attributes(), attribute.Int64("token", token))
			require.Contains(t, span.Attributes(), attribute.String("recipe", "mutex"))
			require.Equal(t, codes.Unset, span.Status().Code)
		}
		require.Equal(t, []string{
			"zookeeper.lock.wait 2s", "zookeeper.lock.hold 4s",
		}, names)
	})
}

func TestWaitsThatComeToNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		first, _ := s.connect("first")
		second, _ := s.connect("second")
		waiter := s.mutex(second)
		holder, err := recipes.NewInterProcessMutex(first, path) // not observed
		require.NoError(t, err)
		holding := s.owner()
		require.NoError(t, holder.Acquire(holding))
		held, err := waiter.AcquireTimeout(s.owner(), time.Second)
		require.NoError(t, err)
		require.False(t, held)
		ctx, cancel := context.WithTimeout(s.owner(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, waiter.Acquire(ctx), context.DeadlineExceeded)
		require.Equal(t, []string{
			"lock.timeouts [{timeout}] name= recipe=mutex: 1",
			"lock.wait.duration [s] name= outcome=failed recipe=mutex: 1 times, 3.000",
			"lock.wait.duration [s] name= outcome=timed out recipe=mutex: 1 times, 1.000",
			"lock.waiters [{waiter}] name= recipe=mutex: 0",
		}, of(s.metrics(), "lock.timeouts", "lock.wait.duration", "lock.waiters",
			"lock.holders"))
		spans := s.spans.Ended()
		require.Len(t, spans, 2)
		require.Equal(t, codes.Unset, spans[0].Status().Code)
		require.Equal(t, codes.Error, spans[1].Status().Code)
		require.Equal(t, "queued", spans[1].Events()[0].Name)
		require.NoError(t, holder.Release(holding))
	})
}

// Who loses its place is one waiter all the same, also where all waiters have one ctx.
func TestAPlaceThatIsLostIsNoSecondWaiter(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		first, _ := s.connect("first")
		second, _ := s.connect("second")
		holder := s.mutex(first)
		holding := s.owner()
		require.NoError(t, holder.Acquire(holding))
		shared, acquired := t.Context(), make(chan error, 3)
		waiter := s.mutex(second)
		for range 3 {
			go func() {
				err := waiter.Acquire(shared)
				if err == nil {
					err = waiter.Release(shared)
				}
				acquired <- err
			}()
		}
		time.Sleep(time.Second)
		waiters := func(n int) {
			t.Helper()
			require.Equal(t, []string{
				fmt.Sprintf("lock.waiters [{waiter}] name= recipe=mutex: %d", n),
			}, of(s.metrics(), "lock.waiters"))
		}
		waiters(3)
		s.cluster.ExpireSession(second.SessionID())
		time.Sleep(20 * time.Second)
		waiters(3)
		require.Equal(t, []string{"lock.wait.age [s] name= recipe=mutex: 21.000"},
			of(s.metrics(), "lock.wait.age"))
		require.NoError(t, holder.Release(holding))
		for range 3 {
			require.NoError(t, <-acquired)
		}
		waiters(0)
		var joined int
		for _, span := range s.spans.Ended() {
			joined += len(span.Events())
		}
		require.Equal(t, 1+3+3, joined)
	})
}

func TestLosses(t *testing.T) {
	type fault func(s *scene, of *recipes.Client, link *zktest.Link, node string)
	for want, lose := range map[string]fault{
		"session ended": func(
			s *scene, client *recipes.Client, link *zktest.Link, _ string,
		) {
			link.Cut()
			s.cluster.ExpireSession(client.SessionID())
			link.Heal()
		},
		"out of touch": func(_ *scene, _ *recipes.Client, link *zktest.Link, _ string) {
			link.Cut()
		},
		"znode gone": func(s *scene, _ *recipes.Client, _ *zktest.Link, node string) {
			other, _ := s.connect("other")
			require.NoError(s.t, other.Delete(node, -1))
		},
		"closed": func(_ *scene, client *recipes.Client, _ *zktest.Link, _ string) {
			client.Close()
		},
		"hold expired": func(*scene, *recipes.Client, *zktest.Link, string) {
			time.Sleep(time.Minute)
		},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *scene) {
				client, link := s.connect("holder")
				lock := s.mutex(client, recipes.WithMaxHold(time.Minute))
				ctx := s.owner()
				require.NoError(t, lock.Acquire(ctx))
				time.Sleep(time.Second)
				hold := lock.Hold(ctx)
				require.Contains(t, s.metrics(),
					"lock.losses [{loss}] name= reason="+want+" recipe=mutex: 0")
				lose(s, client, link, hold.Path())
				<-hold.Lost()
				time.Sleep(time.Second)
				require.Contains(t, s.metrics(),
					"lock.losses [{loss}] name= reason="+want+" recipe=mutex: 1")
				require.Contains(t, s.metrics(),
					"lock.holders [{holder}] name= recipe=mutex: 0")
				ended := s.spans.Ended()
				span := ended[len(ended)-1]
				require.Equal(t, "zookeeper.lock.hold", span.Name())
				require.Equal(t, codes.Error, span.Status().Code)
				require.Contains(t, span.Attributes(), attribute.String("reason", want))
				require.ErrorIs(t, lock.Release(ctx), recipes.ErrLockLost)
				require.Contains(t, s.metrics(),
					"lock.losses [{loss}] name= reason="+want+" recipe=mutex: 1")
			})
		})
	}
}

func TestLeases(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		client, _ := s.connect("one")
		semaphore, err := recipes.NewInterProcessSemaphoreV2(
			client, path, 2, recipes.WithObserver(s.observer.Lock),
		)
		require.NoError(t, err)
		leases, err := semaphore.AcquireN(t.Context(), 2)
		require.NoError(t, err)
		go func() {
			time.Sleep(5 * time.Second)
			if err := semaphore.ReturnAll(t.Context(), leases); err != nil {
				t.Error(err)
			}
		}()
		last, err := semaphore.Acquire(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.Equal(t, []string{
			"lock.holders [{holder}] name= recipe=semaphore: 1",
			"lock.waiters [{waiter}] name= recipe=semaphore: 0",
		}, of(s.metrics(), "lock.holders", "lock.waiters"))
		require.NoError(t, last.Release(t.Context()))
		require.Contains(t, s.metrics(),
			"lock.hold.duration [s] name= recipe=semaphore: 3 times, 11.000")
	})
}

// Holds that share a znode, as recipes.WithCaching has it, are kept apart.
func TestHoldsOfOneZnode(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		client, _ := s.connect("one")
		lock, err := recipes.NewInterProcessReadWriteLock(client, path,
			recipes.WithCaching(time.Minute, 10), recipes.WithObserver(s.observer.Lock))
		require.NoError(t, err)
		long, short := s.owner(), s.owner()
		require.NoError(t, lock.ReadLock().Acquire(long))
		time.Sleep(10 * time.Second)
		require.NoError(t, lock.ReadLock().Acquire(short))
		require.Equal(t, lock.ReadLock().LockPath(long), lock.ReadLock().LockPath(short))
		time.Sleep(time.Second)
		require.Contains(t, s.metrics(),
			"lock.holders [{holder}] name= recipe=read lock: 2")
		require.NoError(t, lock.ReadLock().Release(short))
		time.Sleep(time.Second)
		require.NoError(t, lock.ReadLock().Release(long))
		require.Contains(t, s.metrics(),
			"lock.holders [{holder}] name= recipe=read lock: 0")
		var holds []time.Duration
		for _, span := range s.spans.Ended() {
			if span.Name() == "zookeeper.lock.hold" {
				holds = append(holds, span.EndTime().Sub(span.StartTime()))
			}
		}
		require.Equal(t, []time.Duration{time.Second, 12 * time.Second}, holds)
	})
}

func TestSessions(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		client, _ := s.connect("one")
		s.cluster.ExpireSession(client.SessionID())
		time.Sleep(10 * time.Second)
		client.Close()
		require.Equal(t, []string{
			"session.transitions [{transition}] cluster=east state=closed: 1",
			"session.transitions [{transition}] cluster=east state=connected: 2",
			"session.transitions [{transition}] cluster=east state=disconnected: 1",
			"session.transitions [{transition}] cluster=east state=expired: 1",
		}, s.metrics())
	}, otelrecipes.WithAttributes(attribute.String("cluster", "east")))
}

// A candidate is there with 0 before it leads.
func TestLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		e := recipes.Event{Recipe: "leader latch", Path: "/election", Node: "/election/n"}
		for _, step := range []struct {
			kind recipes.EventKind
			want int
		}{
			{recipes.EventQueued, 0},
			{recipes.EventAcquired, 1},
			{recipes.EventLost, 0},
			{recipes.EventQueued, 0},
			{recipes.EventAcquired, 1},
			{recipes.EventReleased, 0},
			{recipes.EventLost, 0}, // a release that was not confirmed
		} {
			if e.Kind = step.kind; e.Kind == recipes.EventQueued {
				e.ID++
			}
			s.observer.Lock(t.Context(), e)
			require.Equal(t, []string{fmt.Sprintf(
				"leader [{leader}] name=ELECTION recipe=leader latch: %d", step.want,
			)}, of(s.metrics(), "leader"))
		}
	}, otelrecipes.WithName(func(path string) string {
		return strings.ToUpper(strings.Trim(path, "/"))
	}))
}

// Whoever wraps the observer may hand events on to another goroutine, in their order.
func TestEventsAreKnownByTheirAcquisition(t *testing.T) {
	inBubble(t, func(t *testing.T, s *scene) {
		for _, e := range []recipes.Event{
			{Kind: recipes.EventQueued, ID: 1, Recipe: "mutex"},
			{Kind: recipes.EventQueued, ID: 2, Recipe: "mutex"},
			{Kind: recipes.EventQueued, ID: 1, Recipe: "mutex"},
			{Kind: recipes.EventAcquired, ID: 1, Recipe: "mutex", Node: "/n"},
			{Kind: recipes.EventAcquired, ID: 2, Recipe: "mutex", Node: "/n"},
			{Kind: recipes.EventReleased, ID: 1, Recipe: "mutex", Node: "/n"},
			{Kind: recipes.EventLost, ID: 1, Recipe: "mutex", Node: "/n"},
		} {
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.observer.Lock(t.Context(), e)
			}()
			<-done
		}
		require.Equal(t, []string{
			"lock.holders [{holder}] name= recipe=mutex: 1",
			"lock.waiters [{waiter}] name= recipe=mutex: 0",
		}, of(s.metrics(), "lock.holders", "lock.waiters"))
	})
}

func TestOptions(t *testing.T) {
	for want, option := range map[string]otelrecipes.Option{
		"option 1 is nil":                     nil,
		"WithName: the function is nil":       otelrecipes.WithName(nil),
		"WithMeterProvider: provider is nil":  otelrecipes.WithMeterProvider(nil),
		"WithTracerProvider: provider is nil": otelrecipes.WithTracerProvider(nil),
	} {
		_, err := otelrecipes.NewObserver(option)
		require.EqualError(t, err, "otelrecipes: "+want)
	}
	_, err := otelrecipes.NewObserver()
	require.NoError(t, err)
}
