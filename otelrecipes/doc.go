// Package otelrecipes tells OpenTelemetry what the locks of package recipes do: metrics,
// and a span for each wait and for each hold.
//
//	observer, err := otelrecipes.NewObserver()
//	…
//	client, err := recipes.Connect(ctx, servers, 10*time.Second,
//		recipes.WithClientObserver(observer.Session))
//	lock, err := recipes.NewInterProcessMutex(client, "/locks/orders",
//		recipes.WithObserver(observer.Lock))
//
// It goes to the providers of package otel, which do nothing until they are set, unless
// [WithMeterProvider] and [WithTracerProvider] name others. The folder example has a
// program that Prometheus can scrape, and a dashboard for Grafana.
//
// # Metrics
//
//	zookeeper.lock.wait.duration    histogram, s   outcome: acquired, timed out, failed
//	zookeeper.lock.hold.duration    histogram, s
//	zookeeper.lock.waiters          gauge          acquisitions in a queue now
//	zookeeper.lock.holders          gauge          holds, of a semaphore leases
//	zookeeper.lock.timeouts         counter
//	zookeeper.lock.losses           counter        reason, see below
//	zookeeper.leader                gauge          0, 1: leads
//	zookeeper.session.transitions   counter        state, see below
//
// Those of locks have the attribute recipe: "mutex", "read lock", "write lock",
// "semaphore", "semaphore mutex", "leader selector", "leader latch". Those of a session
// have state instead: connected, disconnected, expired, closed. The path of a lock is in
// none of them unless [WithName] says how.
//
// The reason of a loss is "session ended", "znode gone" (somebody has deleted it, or the
// session has ended, of which the client hears later), "out of touch" (with ZooKeeper,
// for so long that the session may have ended), "closed" (the connection, by this
// process), "hold expired" (recipes.WithMaxHold), or "other".
//
// All is of this process alone: the sum over all processes tells who waits and who holds.
// zookeeper.leader is there from when a candidate queues. Where several elections have
// the same attributes it is how many of them are led; [WithName] keeps them apart.
// AcquireN of a semaphore counts as so many waits of the same length.
//
// # Spans
//
// "zookeeper.lock.wait" is as long as an acquisition, with an event "queued" each time
// that it joined the queue, and how many were ahead. "zookeeper.lock.hold" begins with
// it, and ends with the release or the loss, which is its error. Both are children of the
// span in the ctx of Acquire, and have the attributes of the metrics and the fencing
// token, "token", which no metric has: each hold has another one.
package otelrecipes
