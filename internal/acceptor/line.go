package acceptor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Line is one of a trace: an event of package simulator.
type Line struct {
	At     time.Duration `json:"at"`
	Kind   string        `json:"kind"`
	Worker int           `json:"worker"`
	Owner  int           `json:"owner"`
	Step   int           `json:"step"`
	Part   int           `json:"part"`

	Path    string        `json:"path"` // of what is asked for; of the lock
	Node    string        `json:"node"` // of the owner's; of a create: what it has made
	Session int64         `json:"session"`
	Token   int64         `json:"token"`
	Margin  time.Duration `json:"margin"`
	Text    string        `json:"text"`

	Client int    `json:"client"`
	Op     string `json:"op"`
	Xid    int32  `json:"xid"`
	Watch  bool   `json:"watch"`
	Zxid   int64  `json:"zxid"`
	Code   int32  `json:"code"`
}

// An acquisition is what the lines of one call to acquire have in common.
type acquisition struct{ worker, owner, step, part int }

func (l Line) acquisition() acquisition {
	return acquisition{l.Worker, l.Owner, l.Step, l.Part}
}

func (l Line) String() string {
	text, err := json.Marshal(l)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Read reads a trace that is written as NDJSON.
func Read(r io.Reader) (trace []Line, err error) {
	for lines := json.NewDecoder(r); ; {
		var l Line
		switch err := lines.Decode(&l); {
		case errors.Is(err, io.EOF):
			return trace, nil
		case err != nil:
			return nil, fmt.Errorf("acceptor: line %d: %w", len(trace)+1, err)
		}
		trace = append(trace, l)
	}
}
