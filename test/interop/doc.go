// Package interop has only tests. They show that Go processes with this library and Java
// processes with Apache Curator can share locks on the same paths. For each recipe: one
// waits for what the other holds, both are granted the lock in the order in which they
// joined, the end of a session on either side hands it over to the other, and a count
// that both change under the lock is exact. Members of a group in both languages see each
// other. The locks are shown for Python processes with kazoo, too, next to Go, and next
// to Go and Java.
//
// # How to run them
//
//	go test ./test/interop
//
// They need a ZooKeeper, as all tests here do, a JDK of version 17 or later (that of
// JAVA_HOME, or the one in PATH), and Curator: Debian's libcurator-recipes-java, or the
// jars that CURATOR_CLASSPATH names, with all that they need. If one of these is
// missing, they fail and say how to get it; under -short they are skipped.
// scripts/test.sh installs what is missing, if it may. Those with Python need Python 3
// with kazoo 2.7.1 or later: Debian's python3-kazoo, or the Python that KAZOO_PYTHON
// names. The lines for Node.js of docs/appendix/zktest-java-python.md need node.
//
// The tests compile the program in the folder java, once, and start it as a process of
// its own. It reads commands from its standard input, executes them with Curator, in a
// thread for each owner, and ends with its standard input.
//
// # What was tested
//
// Curator 5.4.0 (Debian 12) on ZooKeeper 3.8.0, and Curator's main branch after 5.9.0,
// compiled for the same ZooKeeper. All tests hold with both; one of them,
// TestJavaDowngradesBeforeAWriter, expects of each version what it does. kazoo 2.8.0
// (Debian 12).
//
// # What Curator does its own way
//
// None of this keeps Go and Java from sharing a lock. Know it if you run both.
//
//   - Before 5.5, the read lock under a thread's own write lock gets a number of its own,
//     behind the waiting writers. When the write lock is released, they are admitted next
//     to the reader, in whatever language (CURATOR-276, CURATOR-621).
//   - A semaphore's acquire of several leases acquires them one by one, and others come
//     in between. Two such callers, or one and a Go process, may each have a part and
//     wait for the other's. Give one of them a timeout.
//   - If the session ends just as a semaphore creates the znode of a lease, Curator
//     creates it in the next session all the same, without its queue entry, and waits.
//     Then two wait for one lease, this one and the one whose turn it is in the queue. No
//     lease is granted until one of the two stops waiting.
//   - An acquire whose create has failed twice, for lack of a connection or of a session,
//     fails because of a null, on any server, if it could list the queue in between: that
//     list ends the retries, although nothing was created.
//   - If the session of a waiter ends, it may notice that only when the znode that it
//     waits for is deleted. It then rejoins at the tail.
//   - A thread is not notified that its session has ended: isAcquiredInThisProcess stays
//     true, and release reports nothing.
//   - A revocable lock writes no data into its znode, does not see a request that came
//     before its watch, and is not revocable after its first release.
//   - Every child of a lock's path counts, whatever its name. Keep other znodes out of
//     it.
package interop
