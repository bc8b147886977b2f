// Package chaos runs the simulator's workload on a real ensemble, while it kills and
// freezes servers, breaks, stalls and slows down connections, and stops workers. It has
// only tests, and is a module of its own: its proxies need modules that the library's
// tests must not have. What "zklock prove" uses of them, too, is package faults.
//
//	cd test/chaos && CHAOS=10m go test -timeout 0 .
//
// It takes a minute, or as long as CHAOS says. The faults come from a seed, which it
// prints, and which CHAOS_SEED sets. The same seed does not repeat a run: the machine's
// timing differs.
//
// CHAOS_MULTI=1 has no locks but multi locks that share members, CHAOS_PLAIN=1 no
// connections but go-zookeeper's own, and CHAOS_RUNS=20 makes that many runs on each
// ensemble, one after the other. A run in which somebody is stuck prints what each server
// shows, and the library's goroutines.
//
// Servers that break a promise of their own make locks fail, too. To see whether yours
// keep what they confirm, with no lock on them:
//
//	CHAOS_WITNESS=10m go test -run TestServersRemember -timeout 0 -v .
package chaos
