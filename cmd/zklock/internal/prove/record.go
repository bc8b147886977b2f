package prove

import (
	"bufio"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// A record is a line of the file that keeps a run. First comes a Head, then for each
// round a Round, its Events and a RoundEnd, and at last the End.
type record struct {
	Head     *Head            `json:"head,omitempty"`
	Round    *roundHead       `json:"round,omitempty"`
	Event    *simulator.Event `json:"event,omitempty"`
	RoundEnd *roundHead       `json:"roundEnd,omitempty"`
	End      *Report          `json:"end,omitempty"`
}

// fileFormat is the version of the file.
const fileFormat = 1

// A Head says what a file is of.
type Head struct {
	Format  int       `json:"zklockProve"`
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	Root    string    `json:"root"`
	Seed    uint64    `json:"seed"`
}

// A roundHead is what the checks of a round need to know.
type roundHead struct {
	Number  int           `json:"number"`
	Root    string        `json:"root"`
	Session time.Duration `json:"session"`
	Calm    bool          `json:"calm"`
	// Late is by how much the judge was late at worst. It is known at the end.
	Late time.Duration `json:"late"`
}

// limits are what the history of the round is checked against. They allow for a judge
// that was late by so much: what it has noted then may have been earlier.
func (h roundHead) limits() simulator.Limits {
	leases := map[string]int{}
	for _, lock := range locksOf(h.Root) {
		if lock.Recipe == simulator.Semaphore {
			leases[lock.Paths[0]] = lock.Leases
		}
	}
	t := h.Session
	return simulator.Limits{
		Leases: leases, Slack: t/40 + 2*h.Late, Grace: t/6 + h.Late,
		Prompt:  t + h.Late, // the machine stood still for the workers, too
		Session: t, Linearize: linearizeWithin,
	}
}

// linearizeWithin bounds the search of an order for each lock.
const linearizeWithin = 10 * time.Second

// lateMost is by how much a judge may be late at most, in parts of the session timeout.
// With more, two holders could pass for one after the other.
const lateMost = 10

// A recorder writes records. It is safe for concurrent use.
type recorder struct {
	mu  sync.Mutex // guards what follows
	to  *bufio.Writer
	err error
}

// newRecorder returns one that keeps nothing if to is nil.
func newRecorder(to io.Writer) *recorder {
	r := &recorder{}
	if to != nil {
		r.to = bufio.NewWriter(to)
	}
	return r
}

func (r *recorder) keep(one record) {
	if r.to == nil {
		return
	}
	line, err := json.Marshal(one)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.err == nil {
		_, err = r.to.Write(append(line, '\n'))
	}
	if r.err == nil {
		r.err = err
	}
}

func (r *recorder) flush() error {
	if r.to == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.to.Flush()
	}
	return r.err
}
