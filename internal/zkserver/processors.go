//go:build !race

package zkserver

import "runtime"

// oneProcessor has the tests run on one processor, unless -cpu says otherwise. Goroutines
// in a bubble nearly always wait for one another: to wake a second processor for them, in
// vain, took a third of the time. The race detector is to see them on several.
func oneProcessor() { runtime.GOMAXPROCS(1) }
