// Package interop has only tests. They show that Go processes with this library and Java
// processes with Apache Curator are one fleet on the same paths: for each recipe that one
// holds what the other waits for, that both are granted in the order in which they asked,
// that the end of a session on either side hands over to the other, and that a count
// which both change under the lock is exact. Likewise for Python processes with kazoo,
// beside Go, and beside Go and Java.
//
// # How to run them
//
//	go test ./interop
//
// They need a ZooKeeper, as all tests here do, a JDK of version 17 or later (that of
// JAVA_HOME, or the one in PATH), and Curator: Debian's libcurator-recipes-java, or the
// jars that CURATOR_CLASSPATH names, with all that they need. Where one of these is
// missing, they fail and say how to get it; under -short they are skipped.
// scripts/test.sh installs what is missing, where it may. Those with Python need Python 3
// with kazoo 2.7.1 or later: Debian's python3-kazoo, or the Python that KAZOO_PYTHON
// names.
//
// The tests compile the program in the directory java, once, and start it as a process of
// its own. It does with Curator what it is told on its standard input, by as many threads
// as there are owners, and ends with its standard input.
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
// None of this keeps Go and Java from sharing a lock, but who runs both should know.
//
//   - Before 5.5 the read lock under a thread's own write lock gets a number of its own,
//     behind the writers that wait. When the write lock is released, they enter beside
//     the reader, whatever language they are written in (CURATOR-276, CURATOR-621).
//   - A semaphore's acquire of several leases takes them one by one and lets others ask
//     in between. It and another one, or it and a Go process, may each have a part and
//     wait for the other's. Give one of them a timeout.
//   - When the session ends just as a semaphore makes the znode of a lease, it makes it
//     in the next session all the same, without its place in the queue, and waits. With
//     the one whom the queue has let through there are two then who wait for one lease,
//     and no lease is granted until one of the two gives up.
//   - An acquire whose create has failed twice, for want of a connection or of a session,
//     falls over a null, on any server, where it could list the queue between the two:
//     that list ends the retries, and the create has come to nothing.
//   - Who waits for a lock while the session ends may notice only when the node that it
//     waits for has gone, and queues anew then.
//   - A thread is not told that its session has ended: isAcquiredInThisProcess stays
//     true, and release finds nothing wrong.
//   - A revocable lock writes no data into its znode, does not see a request that came
//     before its watch, and is not revocable any more after its first release.
//   - Every child of a lock's directory counts, whatever its name. Keep other znodes out
//     of it.
package interop
