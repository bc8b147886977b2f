package prove

import (
	"bufio"
	"encoding/json"
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
}

// A fromWorker is a message of a worker: an event, or the last one.
type fromWorker struct {
	Number uint64           `json:"number,omitempty"`
	Event  *simulator.Event `json:"event,omitempty"`
	Done   bool             `json:"done,omitempty"`
	Failed string           `json:"failed,omitempty"` // with Done
}

const (
	// lineMost bounds a message, in bytes.
	lineMost = 64 << 10
	// textMost bounds a text in an event, in bytes.
	textMost = 8 << 10
)

// A lineWriter writes messages, each on a line. It is safe for concurrent use.
type lineWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (w *lineWriter) write(message any) error {
	line, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(line) >= lineMost {
		return fmt.Errorf("prove: a message of %d bytes is too long", len(line))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.to.Write(append(line, '\n'))
	return err
}

// readLines calls what takes a message for each line, until the end. A line that is too
// long, or no message, is an error.
func readLines[T any](from io.Reader, take func(T) error) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, lineMost)
	for lines.Scan() {
		var message T
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			return fmt.Errorf("prove: not a message: %w", err)
		}
		if err := take(message); err != nil {
			return err
		}
	}
	return lines.Err()
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
