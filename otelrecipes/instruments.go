package otelrecipes

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// What the metrics are called is what dashboards ask for.
const (
	waitDuration = "zookeeper.lock.wait.duration"
	holdDuration = "zookeeper.lock.hold.duration"
	waiters      = "zookeeper.lock.waiters"
	holders      = "zookeeper.lock.holders"
	timeouts     = "zookeeper.lock.timeouts"
	losses       = "zookeeper.lock.losses"
	leader       = "zookeeper.leader"
	transitions  = "zookeeper.session.transitions"
	waitAge      = "zookeeper.lock.wait.age"
	holdAge      = "zookeeper.lock.hold.age"
	remaining    = "zookeeper.lock.hold.remaining"
	connected    = "zookeeper.session.connected"
	disconnected = "zookeeper.session.disconnected"
)

// Buckets in seconds. A free lock takes a round trip or two; nobody who waits for more
// than some minutes cares how many. What a hold protects can be a line of code, or a
// leader's month.
var (
	waitBuckets = []float64{
		.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300,
	}
	holdBuckets = []float64{
		.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400,
	}
)

type instruments struct {
	waitDuration, holdDuration    metric.Float64Histogram
	waiters, holders, leader      metric.Int64UpDownCounter
	timeouts, losses, transitions metric.Int64Counter
}

func newInstruments(m metric.Meter) (i instruments, err error) {
	var errs [8]error
	i.waitDuration, errs[0] = m.Float64Histogram(waitDuration,
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(waitBuckets...),
		metric.WithDescription("How long an acquisition has taken."))
	i.holdDuration, errs[1] = m.Float64Histogram(holdDuration,
		metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(holdBuckets...),
		metric.WithDescription("How long a lock was held."))
	i.waiters, errs[2] = m.Int64UpDownCounter(waiters, metric.WithUnit("{waiter}"),
		metric.WithDescription("Acquisitions of this process that wait in a queue."))
	i.holders, errs[3] = m.Int64UpDownCounter(holders, metric.WithUnit("{holder}"),
		metric.WithDescription("Locks and leases that this process holds."))
	i.timeouts, errs[4] = m.Int64Counter(timeouts, metric.WithUnit("{timeout}"),
		metric.WithDescription("Acquisitions that gave up as their time was over."))
	i.losses, errs[5] = m.Int64Counter(losses, metric.WithUnit("{loss}"),
		metric.WithDescription("Holds that have ended under their owner."))
	i.leader, errs[6] = m.Int64UpDownCounter(leader, metric.WithUnit("{leader}"),
		metric.WithDescription("1 while this process leads, 0 while it would like to."))
	i.transitions, errs[7] = m.Int64Counter(transitions, metric.WithUnit("{transition}"),
		metric.WithDescription("Changes of the state of the ZooKeeper session."))
	return i, errors.Join(errs[:]...)
}
