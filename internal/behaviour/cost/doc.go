// Package cost counts what locks cost: requests, watches, goroutines, memory, and, in
// benchmarks, time. It consists of tests.
package cost
