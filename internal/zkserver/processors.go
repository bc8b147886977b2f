//go:build !race

package zkserver

import "runtime"

// oneProcessor has the tests run on one processor, unless -cpu says otherwise. What runs
// in a bubble waits for one another nearly always: to wake a second processor for it, in
// vain, took a third of the time. The race detector is to see goroutines on several.
func oneProcessor() { runtime.GOMAXPROCS(1) }
