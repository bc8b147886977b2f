package plan_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/service"
)

// doer notes what it is told to do.
type doer struct {
	peers []string
	loads []load.Load
	then  func()
}

func (d *doer) Do(_ context.Context, peer string, n int, l load.Load) []load.Result {
	d.peers, d.loads = append(d.peers, peer), append(d.loads, l)
	if d.then != nil {
		d.then()
	}
	return make([]load.Result, n)
}

func newPlan(measured *[]*plan.Measurement) *plan.Plan {
	return &plan.Plan{
		Peers: plan.Peers[:3], Scenarios: plan.Scenarios[:2], Rounds: 4,
		Time: 8 * time.Second, Next: func(string) {},
		Done: func(m *plan.Measurement) { *measured = append(*measured, m) },
	}
}

func TestInARoundThePeersComeOneRightAfterTheOther(t *testing.T) {
	var measured []*plan.Measurement
	p, d := newPlan(&measured), &doer{}
	setting := plan.Setting{Servers: 3, Delay: time.Millisecond}
	at := map[service.Kind]plan.Servers{
		service.ZooKeeper: {Addrs: []string{"a", "b", "c"}, PIDs: []int{7, 8, 9}},
	}
	require.NoError(t, p.Run(t.Context(), d, setting, at))
	require.Len(t, measured, p.Count())
	names := []string{p.Peers[0].Name, p.Peers[1].Name, p.Peers[2].Name}
	for i := 0; i < len(d.peers); i += 3 {
		require.ElementsMatch(t, names, d.peers[i:i+3])
		for _, m := range measured[i : i+3] {
			require.Equal(t, i/6, m.Round)
			require.Equal(t, p.Scenarios[i/3%2].ID, m.Scenario)
			require.Equal(t, setting, m.Setting)
		}
	}
	paths := map[string]bool{}
	for _, l := range d.loads {
		require.Equal(t, []string{"a", "b", "c"}, l.Servers)
		require.Equal(t, []int{7, 8, 9}, l.PIDs)
		require.Equal(t, 8*time.Second, l.Time)
		require.Greater(t, l.Settle, 3*time.Millisecond, "it grows with the delay")
		paths[l.Path] = true
	}
	require.Len(t, paths, p.Count(), "each measurement has a path of its own")
}

func TestAnInterruptEndsTheRun(t *testing.T) {
	var measured []*plan.Measurement
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	p, d := newPlan(&measured), &doer{then: func() { cancel(why) }}
	require.ErrorIs(t, p.Run(ctx, d, plan.Setting{}, nil), why)
	require.Empty(t, measured, "what was interrupted says nothing")
}

func TestScenariosAreChosenByNumberOrName(t *testing.T) {
	id := func(s plan.Scenario) string { return s.ID }
	all, err := plan.Choose(plan.Scenarios, id, nil)
	require.NoError(t, err)
	require.Len(t, all, len(plan.Scenarios))
	some, err := plan.Choose(plan.Scenarios, id, []string{"S1", "S3", "S5-10"})
	require.NoError(t, err)
	var ids []string
	for _, s := range some {
		ids = append(ids, s.ID)
	}
	require.Equal(t, []string{"S1", "S3-16", "S3-256", "S5-10"}, ids)
	_, err = plan.Choose(plan.Scenarios, id, []string{"S1", "S99"})
	require.ErrorContains(t, err, "S99")
}

func TestWhatAMeasurementSays(t *testing.T) {
	half := 500 * time.Millisecond
	two := plan.Measurement{Results: []load.Result{
		{Ops: 30, Took: time.Second}, {Ops: 10, Took: half, Median: &half},
	}}
	speed, ok := two.Speed(plan.Rate)
	require.True(t, ok)
	require.InDelta(t, 50, speed, 1e-9, "that of both")
	share, ok := two.LeastShare()
	require.True(t, ok)
	require.InDelta(t, 0.25, share, 1e-9)

	one := plan.Measurement{Results: two.Results[1:]}
	speed, ok = one.Speed(plan.Latency)
	require.True(t, ok)
	require.InDelta(t, 2, speed, 1e-9)
	_, ok = one.LeastShare()
	require.False(t, ok)

	for _, nothing := range []load.Result{
		{Unsupported: true}, {Fault: "stuck"}, {Took: time.Second},
	} {
		m := plan.Measurement{Results: []load.Result{nothing}}
		_, ok := m.Speed(plan.Rate)
		require.False(t, ok)
	}
}

func TestWhatAnOperationCosts(t *testing.T) {
	pointer := func(v float64) *float64 { return &v }
	ms := func(n int) *time.Duration {
		d := time.Duration(n) * time.Millisecond
		return &d
	}
	// Both workers saw the servers be busy for as long, for all 40 operations.
	m := plan.Measurement{Results: []load.Result{
		{
			Ops: 30, Took: time.Second, Requests: pointer(2), Bytes: pointer(100),
			ClientCPU: ms(100), ServerCPU: ms(399),
		},
		{
			Ops: 10, Took: time.Second, Requests: pointer(4), Bytes: pointer(300),
			ClientCPU: ms(300), ServerCPU: ms(401),
		},
	}}
	want := map[string]float64{
		"time": 1.0 / 40, "requests": 2.5, "bytes": 150, "client CPU": 0.01,
		"server CPU": 0.01,
	}
	for _, metric := range plan.Metrics {
		got, ok := metric.Of(&m, plan.Rate)
		require.True(t, ok, metric.Name)
		require.InDelta(t, want[metric.Name], got, 1e-9, metric.Name)
	}
	per, ok := m.PerCPU()
	require.True(t, ok)
	require.InDelta(t, 50, per, 1e-9)

	m.Results[1] = load.Result{Fault: "stuck"}
	for _, metric := range plan.Metrics {
		_, ok := metric.Of(&m, plan.Rate)
		require.False(t, ok, metric.Name)
	}
	_, ok = m.PerCPU()
	require.False(t, ok)
}
