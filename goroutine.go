package recipes

import (
	"bytes"
	"runtime"
	"strconv"
	"sync/atomic"
)

// goroutineID reads the number from the first line of the stack, "goroutine 18
// [running]:", which is the only place where the runtime tells it. It takes some
// microseconds. Numbers are not used twice in a process.
func goroutineID() uint64 {
	var buf [64]byte
	line := buf[:runtime.Stack(buf[:], false)]
	line = bytes.TrimPrefix(line, []byte("goroutine "))
	number, _, _ := bytes.Cut(line, []byte(" "))
	id, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil {
		panic("BUG: recipes: no goroutine number in " + string(line))
	}
	return id
}

// A presence is the goroutine that is in some code; zero: none is. So code that it calls
// finds out that it would wait for itself.
type presence struct{ goroutine atomic.Uint64 }

func (p *presence) enter() { p.goroutine.Store(goroutineID()) }

func (p *presence) leave() { p.goroutine.Store(0) }

// isHere tells whether that is the calling goroutine.
func (p *presence) isHere() bool {
	at := p.goroutine.Load()
	return at != 0 && at == goroutineID()
}
