// Package prove holds the library to its promises on an ensemble that one runs. It is
// what "zklock prove" does.
//
// A run has rounds of about half a minute, each below a znode of its own. In a round
// worker processes use locks as the simulator's workload has it, and pass each event on
// to the judge, which is the process that was started: it takes the time of all events by
// its own clock, uses no lock, and suspends and kills the others. What a worker does next
// it does only once the judge has taken the event that says so. At the end of a round all
// locks must be free and nothing be left, and the history must pass the simulator's
// checks. So what a run needs of memory does not grow with its length.
//
// The parts:
//
//   - config.go: what a run is made of
//   - worker.go, limiter.go: the inside of a worker process, and how fast it asks
//   - slot.go: a worker process seen from outside; crew.go: those of one machine, and the
//     faults that they get
//   - door.go, net.go: crews on other machines, and how they join
//   - clock.go: whether the clocks of all processes run alike
//   - judge.go: the history; record.go, check.go: the file that it is kept in
//   - run.go: a run and its rounds; root.go: the znode that all is below
//   - ensemble.go, measure.go: what is measured; advice.go: what follows
//   - report.go, shrink.go, page.go: what is said at the end
//
// Nothing here sends a signal to a process that it has not started, or touches a znode
// outside of the root.
package prove
