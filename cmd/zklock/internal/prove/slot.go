package prove

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// A worker is a process that was started here.
type worker struct {
	number int
	cmd    *exec.Cmd
	to     *lineWriter
	in     io.Closer
	said   *said
	began  time.Time
	clock  *clock
	ended  <-chan struct{} // the process has
	heard  chan struct{}   // closed once all that it has written was taken

	// What follows may be read once heard is closed.
	done   bool   // it came to its end
	failed string // how: "" if well
	broken error  // what it has written is no message
}

// startWorker starts one.
func (h Host) startWorker(o order, to bench) (*worker, error) {
	w := &worker{
		number: o.Worker, said: &said{}, heard: make(chan struct{}),
		began: time.Now(), clock: &clock{over: o.Session},
	}
	w.cmd = h.Worker()
	w.cmd.Stderr = w.said
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.in, w.to = in, newLineWriter(in)
	if w.ended, err = h.Start(w.cmd); err != nil {
		return nil, fmt.Errorf("start worker %d: %w", o.Worker, err)
	}
	go w.hear(out, to)
	return w, w.to.write(toWorker{Order: &o})
}

// hear passes on what the worker has written, until it ends. To the checks one that ends
// before it has done so is stopped for ever.
func (w *worker) hear(out io.Reader, to bench) {
	defer close(w.heard)
	defer func() {
		if !w.done {
			tellAndWait(to, w.event(simulator.Paused))
		}
	}()
	w.broken = readLines(out, func(m fromWorker) error {
		if m.Done {
			w.done, w.failed = true, m.Failed
		}
		if m.Asked > 0 {
			w.compare(m, to)
		}
		if m.Event == nil {
			return nil
		}
		taken := func() { _ = w.to.write(toWorker{Taken: m.Number}) }
		to.take(*m.Event, taken)
		return nil
	})
}

// askClock has the worker say what its clock is.
func (w *worker) askClock() {
	_ = w.to.write(toWorker{Asked: time.Since(w.began)}) // else it has ended
}

// compare takes what the worker says of its clock.
func (w *worker) compare(m fromWorker, to bench) {
	wrong := w.clock.take(reading{m.Asked, time.Since(w.began), m.Clock})
	if wrong != "" {
		to.take(clockEvent(w.number, "process", wrong), nil)
	}
}

// finish has the worker end, and waits for that.
func (w *worker) finish() error {
	_ = w.to.write(toWorker{Finish: true}) // else it has ended
	<-w.heard
	_ = w.in.Close()
	<-w.ended
	switch {
	case w.broken != nil:
		return fmt.Errorf("worker %d: %w", w.number, w.broken)
	case !w.done && w.said.crashed():
		return &stuckError{w.number, w.said.String()}
	case !w.done:
		return fmt.Errorf("%w: worker %d: %s", errEnded, w.number, w.said)
	case w.failed != "":
		return &stuckError{w.number, w.failed}
	}
	return nil
}

// errEnded says that a worker ended that nobody had killed.
var errEnded = errors.New("a worker has ended by itself")

// A stuckError says that a worker did not come to its end as it should: it got stuck, or
// crashed.
type stuckError struct {
	worker int
	text   string
}

func (e *stuckError) Error() string {
	return fmt.Sprintf("worker %d: %s", e.worker, e.text)
}

// kill ends the worker's process, and waits until all that it had written was taken.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // else it has ended
	<-w.ended
	<-w.heard
	_ = w.in.Close()
}

func (w *worker) signal(s syscall.Signal) error { return w.cmd.Process.Signal(s) }

// event is one of the worker as a whole.
func (w *worker) event(kind simulator.Kind) simulator.Event {
	return simulator.Event{Kind: kind, ID: simulator.ID{Worker: w.number}}
}

// tellAndWait has an event taken.
func tellAndWait(to bench, e simulator.Event) {
	taken := make(chan struct{})
	to.take(e, sync.OnceFunc(func() { close(taken) }))
	<-taken
}

// A said keeps the beginning of what is written to it. It is safe for concurrent use.
type said struct {
	mu   sync.Mutex
	kept []byte
}

const saidMost = 4 << 10

// Write implements io.Writer.
func (t *said) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if len(t.kept) > saidMost { // the beginning says why, of a crash
		t.kept = bytes.Clone(t.kept[:saidMost])
	}
	return len(p), nil
}

// crashed tells whether what was written is how Go ends a program that is broken.
func (t *said) crashed() bool {
	text := t.String()
	return strings.Contains(text, "panic: ") || strings.Contains(text, "fatal error: ")
}

func (t *said) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
