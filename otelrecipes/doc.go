// Package otelrecipes reports what the locks of package recipes do to OpenTelemetry: as
// metrics, and as a span for each wait and for each hold.
//
//	observer, err := otelrecipes.NewObserver()
//	…
//	client, err := recipes.Connect(ctx, servers, 10*time.Second,
//		recipes.WithClientObserver(observer.Session))
//	lock, err := recipes.NewInterProcessMutex(client, "/locks/orders",
//		recipes.WithObserver(observer.Lock))
//
// The data goes to the providers of package otel, which do nothing until they are set, or
// to those that [WithMeterProvider] and [WithTracerProvider] name. The folder example has
// a program that Prometheus can scrape, and a dashboard for Grafana. In it
// dashboard-zklock.json and alerts-zklock.yml are for the metrics of "zklock serve",
// which sees the locks of all programs.
//
// # Metrics
//
//	zookeeper.lock.wait.duration    histogram, s   outcome: acquired, timed out, failed
//	zookeeper.lock.hold.duration    histogram, s
//	zookeeper.lock.waiters          gauge          acquisitions in a queue now
//	zookeeper.lock.holders          gauge          holds, of a semaphore leases
//	zookeeper.lock.wait.age         gauge, s       of the oldest wait now; 0: none
//	zookeeper.lock.hold.age         gauge, s       of the oldest hold now; 0: none
//	zookeeper.lock.hold.remaining   gauge, s       until the first hold is lost
//	zookeeper.lock.timeouts         counter
//	zookeeper.lock.losses           counter        reason, see below
//	zookeeper.leader                gauge          0, 1: leads
//	zookeeper.session.transitions   counter        state, see below
//	zookeeper.session.connected     gauge          1 while all clients are, else 0
//	zookeeper.session.disconnected  gauge, s       for how long one has not been
//
// Those of locks have the attribute recipe: "mutex", "read lock", "write lock",
// "semaphore", "semaphore mutex", "leader selector", "leader latch", "persistent node".
// A lock's path is in none of them; [WithName] derives the attribute name from it, which
// is "" without that option. The transitions of a session have state instead: connected,
// disconnected, expired, closed.
//
// The histograms have only waits and holds that have ended; the ages have those that have
// not. What remains is recipes.Hold.Until of the hold that is lost first unless ZooKeeper
// answers: it shrinks in an outage, and is not there while nothing is held. In a process
// with several clients, one that is disconnected makes connected 0. Those that are closed
// do not count. Observers of one provider that have the same attributes show together
// what they know.
//
// The reason of a loss is "session ended", "znode gone" (somebody deleted it, or the
// session ended and the client does not know of that yet), "out of touch" (with
// ZooKeeper, for so long that the session may have ended), "closed" (the connection, by
// this process), "hold expired" (recipes.WithMaxHold), or "other".
//
// All metrics are of this process alone: the sum over all processes shows how many wait
// and hold. zookeeper.leader exists from the time that a candidate joins the queue. If
// several elections have the same attributes, its value is how many of them have their
// leader here; WithName separates them. AcquireN of a semaphore counts as n waits of the
// same length.
//
// # Spans
//
// "zookeeper.lock.wait" is as long as an acquisition. It has an event "queued" each time
// that the acquisition joined the queue, with how many were ahead. "zookeeper.lock.hold"
// begins with the hold, and ends with the release or the loss, which is its error. Both
// are children of the span in the ctx of Acquire. They have the attributes of the
// metrics, and the fencing token, "token", which no metric has: each hold has another
// one.
package otelrecipes
