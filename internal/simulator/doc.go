// Package simulator hunts for two holders of one lock. It has a workload for the recipes,
// a recorder of what the workload sees, and checkers of what it recorded. The same three
// serve a simulated ensemble in virtual time and a real one under chaos; what differs,
// servers and faults, is the business of the tests here.
//
// A [World] runs workers, each a process with a session of its own, and in each of them
// owners, who acquire, hold and release the world's locks as a seed determines. A test
// brings [Config.Dial], which opens a worker's session, and makes the faults. It reports
// to the World what the checkers must know of the faults:
//
//   - [World.Pause] and [World.Resume] stop a worker's owners between two of their steps,
//     and say that its process is stopped: what it holds meanwhile, and for
//     [Limits.Grace] after that, counts as held by nobody.
//   - [World.Expire] must be called before a session is ended by force. No client can
//     know of that in time. The workload itself deletes znodes of others now and then,
//     which is the same to their holders.
//
// An election is a lock to the checkers, and a term an acquisition: at most one leads,
// and tokens grow with the terms. The workload itself records what only an election can
// do wrong: lead is called without leadership, or while it runs, or is not notified of a
// loss.
//
// There are two more things below [Config.Root]: a znode for each lock, which its holders
// write to in a transaction that checks their hold, and one that nobody may touch, for
// owners that ask for what they have no right to ([Config.Trespass]).
//
// The course of a run:
//
//	w, err := simulator.New(simulator.Config{
//		Seed: seed, Workers: 4, Owners: 3, Session: timeout, Dial: dial,
//	})
//	w.Start()
//	// Faults, and then their end: Resume all, heal all.
//	err = w.Finish(ctx) // all stop; everybody gets every lock again; no znode is left
//	err = w.History().Check(w.Limits())
//
// Each owner runs on a goroutine of its own from [World.Start] on, and the [Recorder] has
// one for each hold, which waits for its loss; [World.Finish] waits for all of them. No
// mutex is held across a call to ZooKeeper. The methods of a World and of a Recorder may
// be called from any goroutine.
//
// The tests here are the simulator (TestSimulator: zktest in testing/synctest bubbles, a
// run for each seed), the proof that it finds what is wrong (TestDefects), and the tests
// of the checkers with histories written by hand. The chaos on a real ensemble is a
// module of its own, in test/chaos.
//
// Of a run with one mutex it can write a trace: next to what the workload sees there is
// what the servers commit, and each request, answer and event of the clients, all in one
// order, as NDJSON. SIM_TRACE=DIR keeps what TestTraces records. Package acceptor judges
// traces by the model of the queue; TestSmallTraces writes a few as models for Spin.
//
// A process of its own (a test binary that runs itself again) makes a World of one
// worker, with [Config.First] as its number, writes its [History] as JSON, and takes its
// times from a clock that it shares with the others, [Config.Clock]. [Merge] puts such
// histories together. Its writes need a [Register] that all processes share, in
// [Config.Register], or none.
package simulator
