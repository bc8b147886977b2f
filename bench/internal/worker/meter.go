package worker

import (
	"os"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// A meter measures the traffic and the processor time from its start to its stop.
type meter struct {
	team            *team
	requests, bytes int64
	client, server  *time.Duration
}

func (t *team) startMeter() meter {
	m := meter{team: t, client: cpuTime(os.Getpid()), server: cpuTime(t.PIDs...)}
	m.requests, m.bytes = t.wire.Counted()
	return m
}

// stop enters the processor time, and the traffic of each of r's operations.
func (m meter) stop(r *load.Result) {
	now := m.team.startMeter()
	r.ClientCPU = between(m.client, now.client)
	r.ServerCPU = between(m.server, now.server)
	if r.Ops == 0 {
		return
	}
	each := func(n int64) *float64 {
		v := float64(n) / float64(r.Ops)
		return &v
	}
	r.Requests, r.Bytes = each(now.requests-m.requests), each(now.bytes-m.bytes)
}

func between(from, to *time.Duration) *time.Duration {
	if from == nil || to == nil {
		return nil
	}
	d := *to - *from
	return &d
}
