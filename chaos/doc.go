// Package chaos lets the simulator's workload contend for locks on a real ensemble, while
// servers are killed and frozen, lines cut, stalled and slowed down, and workers stopped.
// It consists of tests, and is a module of its own: the proxies in the lines need more
// than the library's tests should.
//
//	cd chaos && CHAOS=10m go test -timeout 0 .
//
// It takes a minute, or as long as CHAOS says. The faults come from a seed, which is
// printed and which CHAOS_SEED sets; what becomes of them is up to the machine.
package chaos
