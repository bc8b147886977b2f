package worker

import (
	"math"
	"os"
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// A meter is what a team has sent, and the processor time that was taken, at a moment.
type meter struct {
	team            *team
	at              time.Time
	requests, bytes int64
	client, server  *time.Duration
}

func (t *team) startMeter() meter {
	m := meter{
		team: t, at: time.Now(), client: cpuTime(os.Getpid()), server: cpuTime(t.PIDs...),
	}
	m.requests, m.bytes = t.wire.Counted()
	return m
}

// readTogether reads the meter and the operations done by then. Another program may get
// the processor in between, and go on for hundreds of operations: then it reads again.
func (t *team) readTogether(count func() int64) (ops int64, m meter) {
	const tries = 20
	least := int64(math.MaxInt64)
	for range tries {
		before := count()
		read := t.startMeter()
		if meanwhile := count() - before; meanwhile < least {
			ops, m, least = before, read, meanwhile
		}
		if least == 0 {
			break
		}
	}
	return ops, m
}

// stop enters the processor time, and the traffic of each of r's operations.
func (m meter) stop(r *load.Result) { m.until(m.team.startMeter(), r) }

// until enters what was between two readings.
func (m meter) until(now meter, r *load.Result) {
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
