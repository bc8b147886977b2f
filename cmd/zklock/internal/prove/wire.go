package prove

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// An order is what a worker process is to do.
type order struct {
	Seed    uint64            `json:"seed"`
	Worker  int               `json:"worker"`
	Session time.Duration     `json:"session"` // the session timeout
	Root    string            `json:"root"`
	Calm    bool              `json:"calm"`
	Rate    float64           `json:"rate"`  // requests a second
	Lines   map[string]string `json:"lines"` // where a server is reached
}

// A toWorker is a message to a worker: the first is its order.
type toWorker struct {
	Order  *order `json:"order,omitempty"`
	Taken  uint64 `json:"taken,omitempty"` // the number of an event
	Finish bool   `json:"finish,omitempty"`
	Expire bool   `json:"expire,omitempty"` // end your session by its password
	// Asked wants to know the worker's clock. It is a time by the asker's.
	Asked time.Duration `json:"asked,omitempty"`
}

// A fromWorker is a message of a worker: an event, or the last one.
type fromWorker struct {
	Number uint64           `json:"number,omitempty"`
	Event  *simulator.Event `json:"event,omitempty"`
	Done   bool             `json:"done,omitempty"`
	Failed string           `json:"failed,omitempty"` // with Done
	Asked  time.Duration    `json:"asked,omitempty"`  // as it came
	Clock  time.Duration    `json:"clock,omitempty"`  // with Asked
}

const (
	// lineMost bounds a message, in bytes.
	lineMost = 64 << 10
	// textMost bounds a text in an event, in bytes.
	textMost = 8 << 10
)

// A lineWriter writes messages, each on a line. It is safe for concurrent use.
type lineWriter struct {
	turn chan struct{} // a mutex that waits in a test's own time, too
	to   io.Writer
}

func newLineWriter(to io.Writer) *lineWriter {
	return &lineWriter{turn: make(chan struct{}, 1), to: to}
}

func (w *lineWriter) write(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(line) >= lineMost {
		return fmt.Errorf("a message of %d bytes is too long", len(line))
	}
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	_, err = w.to.Write(append(line, '\n'))
	return err
}

// A lineReader reads messages, each on a line.
type lineReader struct{ lines *bufio.Scanner }

func newLineReader(from io.Reader) lineReader {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, lineMost)
	return lineReader{lines}
}

// next reads a message: io.EOF if there is none. A line that is too long, or no message,
// is an error.
func (r lineReader) next(message any) error {
	if !r.lines.Scan() {
		return cmp.Or(r.lines.Err(), io.EOF)
	}
	if err := json.Unmarshal(r.lines.Bytes(), message); err != nil {
		return fmt.Errorf("not a message: %w", err)
	}
	return nil
}

// readLines calls what takes a message for each line, until the end.
func readLines[T any](from io.Reader, take func(T) error) error {
	for lines := newLineReader(from); ; {
		var message T
		switch err := lines.next(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := take(message); err != nil {
			return err
		}
	}
}

// A ledger has the events that were told to the judge and wait to be taken. It is safe
// for concurrent use.
type ledger struct {
	mu      sync.Mutex
	number  uint64            // of the last event
	waiting map[uint64]func() // by number
	closed  bool              // nothing is taken any more
}

// tell numbers an event and has it sent. It calls taken once the judge has taken that,
// and at once if there is no judge any more.
func (l *ledger) tell(send func(number uint64), taken func()) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		taken()
		return
	}
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[uint64]func(){}
	}
	l.number++
	l.waiting[l.number] = taken
	send(l.number)
}

// taken is the judge's answer to an event.
func (l *ledger) taken(number uint64) {
	l.mu.Lock()
	taken := l.waiting[number]
	delete(l.waiting, number)
	l.mu.Unlock()
	if taken != nil {
		taken()
	}
}

// close lets go on what waits for a judge that has gone.
func (l *ledger) close() {
	l.mu.Lock()
	waiting := l.waiting
	l.closed, l.waiting = true, nil
	l.mu.Unlock()
	for _, taken := range waiting {
		taken()
	}
}

// cutText bounds a text.
func cutText(text string) string {
	if len(text) <= textMost {
		return text
	}
	cut := textMost
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
