// Package locktest has what the tests of several packages share to put locks through
// their paces:
//
//   - a [Peer] is a session of its own, as another process would have it, on any kind of
//     server that zkserver starts, in a bubble or in real time, with faults on its wire;
//     [Open] opens a Client there;
//   - a [Bubble] has two processes on a zktest ensemble, in virtual time, and a
//     [ChrootScene] a client below a chroot;
//   - a [Kind] is one of the locks: [ForAll] and [ForAllInBubbles] run a test with each;
//   - a [Candidate] makes a lock of an election, and a [Campaign] runs one;
//   - a [Visit] is one owner's use of a lock in a bubble;
//   - [ClientWrappers], [LateConn] and [SlowMultiConn] wrap a connection;
//   - a [Recorder] keeps what a lock tells its observer, and [Asked] what it tells a
//     listener;
//   - [Eventually], [Within] and [Start] wait for what must happen.
//
// It is for tests only. Its functions and methods that take or keep a testing.TB fail the
// test, so they are for the goroutine of the test; a [Recorder] and a [Candidate] may be
// used by any number of goroutines.
//
// It knows the public package and nothing behind it, so that a test with it says what a
// program would see.
package locktest
