package plan

import (
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// A Metric is something that an operation costs: less is better.
type Metric struct {
	Name string
	Unit string // as benchstat has it
	Of   func(*Measurement, Unit) (float64, bool)
}

// Metrics are all of them.
var Metrics = []Metric{
	{"time", "sec/op", (*Measurement).seconds},
	{"requests", "requests/op", func(m *Measurement, _ Unit) (float64, bool) {
		return m.traffic(func(r *load.Result) *float64 { return r.Requests })
	}},
	{"bytes", "wire-B/op", func(m *Measurement, _ Unit) (float64, bool) {
		return m.traffic(func(r *load.Result) *float64 { return r.Bytes })
	}},
	{"client CPU", "client-CPU-sec/op", func(m *Measurement, _ Unit) (float64, bool) {
		return m.ClientCPU()
	}},
	{"server CPU", "server-CPU-sec/op", func(m *Measurement, _ Unit) (float64, bool) {
		return m.ServerCPU()
	}},
}

func (m *Measurement) seconds(u Unit) (float64, bool) {
	speed, ok := m.Speed(u)
	return 1 / speed, ok
}

// ClientCPU is the processor time of an operation in the workers, in seconds.
func (m *Measurement) ClientCPU() (float64, bool) {
	var sum time.Duration
	for _, r := range m.Results {
		if r.ClientCPU == nil {
			return 0, false
		}
		sum += *r.ClientCPU
	}
	return m.each(sum)
}

// ServerCPU is the processor time of an operation in the servers, in seconds. Each worker
// tells of all that they did, for all workers.
func (m *Measurement) ServerCPU() (float64, bool) {
	var sum time.Duration
	for _, r := range m.Results {
		if r.ServerCPU == nil {
			return 0, false
		}
		sum += *r.ServerCPU
	}
	return m.each(sum / time.Duration(max(1, len(m.Results))))
}

// PerCPU is how many operations a second of the processor is enough for, in the workers
// and the servers together.
func (m *Measurement) PerCPU() (float64, bool) {
	client, ok := m.ClientCPU()
	server, known := m.ServerCPU()
	if sum := client + server; ok && known && sum > 0 {
		return 1 / sum, true
	}
	return 0, false
}

// each shares a time out among all operations.
func (m *Measurement) each(d time.Duration) (float64, bool) {
	ops := m.ops()
	if ops == 0 || m.Fault() != "" {
		return 0, false
	}
	return d.Seconds() / float64(ops), true
}

// traffic is what an operation sends, over all workers.
func (m *Measurement) traffic(of func(*load.Result) *float64) (float64, bool) {
	var sum float64
	for i := range m.Results {
		each := of(&m.Results[i])
		if each == nil {
			return 0, false
		}
		sum += *each * float64(m.Results[i].Ops)
	}
	ops := m.ops()
	if ops == 0 || m.Fault() != "" {
		return 0, false
	}
	return sum / float64(ops), true
}

func (m *Measurement) ops() (sum int64) {
	for _, r := range m.Results {
		sum += r.Ops
	}
	return sum
}
