package otelrecipes

import (
	"bytes"
	"runtime"
	"strconv"
)

// goroutine returns the number of the one that calls. An acquisition has no name that all
// its events share: its znode changes when it loses its place, and one that shares a
// place has none of its own; many can share a ctx. But from its first event to
// EventAcquired all come on the goroutine of Acquire, since a panic of the observer ends
// that. It takes a few microseconds.
func goroutine() uint64 {
	var buf [64]byte
	text := bytes.TrimPrefix(buf[:runtime.Stack(buf[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(text, []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		panic("BUG: no number in front of runtime.Stack: " + err.Error())
	}
	return id
}
