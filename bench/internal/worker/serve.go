// Package worker is what a worker process does: it takes loads from its standard input,
// does each with the locks of its peer, and tells what it measured. The program of the
// directory java does the same with Curator.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
)

// Serve does one load after the other, until in ends.
func Serve(ctx context.Context, p peer.Peer, in io.Reader, out io.Writer) error {
	loads, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var l load.Load
		err := loads.Decode(&l)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a load: %w", err)
		}
		if err := results.Encode(Do(ctx, p, l)); err != nil {
			return fmt.Errorf("tell a result: %w", err)
		}
	}
}

// A shape is something to be done with locks.
type shape func(context.Context, *team) (load.Result, error)

var shapes = map[load.Shape]shape{
	load.Cycle:    cycle,
	load.HandOver: handOver,
	load.Drain:    drain,
	load.Tries:    tries,
	load.Idle:     idle,
	load.Waiting:  tapped(waiting),
	load.Holding:  tapped(holding),
}

// Do does one load, in sessions of its own.
func Do(ctx context.Context, p peer.Peer, l load.Load) load.Result {
	do, known := shapes[l.Shape]
	if !known {
		return load.Result{Fault: fmt.Sprintf("there is no shape %q", l.Shape)}
	}
	t := newTeam(p, l)
	r, err := do(ctx, t)
	if closed := t.close(); err == nil {
		err = closed
	}
	switch {
	case errors.Is(err, peer.ErrUnsupported):
		return load.Result{Unsupported: true}
	case err != nil:
		return load.Result{Fault: err.Error()}
	default:
		return r
	}
}
