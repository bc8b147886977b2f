package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Fault is something that goes wrong for a while.
type Fault struct {
	Kind        string
	Weight      int // how often it is chosen, in relation to the others
	Least, Most time.Duration
	// Leaves a majority of servers only if it is the only one of this sort.
	Quorum bool
	// Begin returns what is to be done to end it. ErrNotNow says that it makes no sense
	// at present.
	Begin Begin
}

// New returns a fault that takes nothing from the servers' majority.
func New(kind string, weight int, least, most time.Duration, begin Begin) Fault {
	return Fault{Kind: kind, Weight: weight, Least: least, Most: most, Begin: begin}
}

// A Begin begins a fault.
type Begin func(ctx context.Context, d Dice) (what string, end func() error, err error)

// ErrNotNow says that a fault makes no sense at present.
var ErrNotNow = errors.New("not now")

// Dice are a seed's choices.
type Dice struct{ *rand.Rand }

// NewDice are those of one of a seed's hands.
func NewDice(seed, hand uint64) Dice {
	//nolint:gosec // faults are to be repeated, and nobody guesses them
	return Dice{rand.New(rand.NewPCG(seed, hand))}
}

// Between returns a time from least to most; short times are more likely than long ones.
func (d Dice) Between(least, most time.Duration) time.Duration {
	share := d.Float64()
	return least + time.Duration(share*share*float64(most-least))
}

// Pick returns one of several, each as likely as the others.
func Pick[T any](d Dice, of ...T) T { return of[d.IntN(len(of))] }

// Hands make faults, each of them one at a time.
type Hands struct {
	// Note puts a remark into the history.
	Note func(format string, args ...any)

	quorum sync.Mutex // held by a fault that leaves just a majority

	mu     sync.Mutex // guards what follows
	counts map[string]int
	failed []error
}

// A Hand is what one of them does.
type Hand struct {
	Rest   time.Duration // between two faults, at most
	Faults []Fault
}

// Run makes faults until ctx is done. When it returns all of them have ended, and the
// error tells which could not be made or ended.
func (h *Hands) Run(ctx context.Context, seed uint64, hands ...Hand) error {
	h.counts = map[string]int{}
	var all sync.WaitGroup
	for number, hand := range hands {
		all.Go(func() {
			d := NewDice(seed, uint64(number)) //nolint:gosec // an index
			for ctx.Err() == nil {
				Sleep(ctx, d.Between(0, hand.Rest))
				h.make(ctx, d, hand.Faults)
			}
		})
	}
	all.Wait()
	return errors.Join(h.failed...)
}

// make makes one fault, from its beginning to its end.
func (h *Hands) make(ctx context.Context, d Dice, faults []Fault) {
	f := choose(d, faults)
	length, alone := d.Between(f.Least, f.Most), d.IntN(5) > 0
	if f.Quorum && alone { // mostly there is somebody who can take what another one loses
		h.quorum.Lock()
		defer h.quorum.Unlock()
	}
	if ctx.Err() != nil {
		return
	}
	what, end, err := f.Begin(ctx, d)
	switch {
	case errors.Is(err, ErrNotNow):
		return
	case err != nil:
		h.fail(fmt.Errorf("begin %s: %w", f.Kind, err))
		return
	}
	h.Note("fault: %s: %s, for %v", f.Kind, what, length.Round(time.Millisecond))
	Sleep(ctx, length)
	if err := end(); err != nil {
		h.fail(fmt.Errorf("end %s: %s: %w", f.Kind, what, err))
		return
	}
	h.Note("fault: %s: %s, is over", f.Kind, what)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[f.Kind]++
}

func choose(d Dice, faults []Fault) Fault {
	var all []Fault
	for _, f := range faults {
		all = append(all, slices.Repeat([]Fault{f}, f.Weight)...)
	}
	return Pick(d, all...)
}

func (h *Hands) fail(err error) {
	h.Note("fault: %v", err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = append(h.failed, err)
}

// Counts is how many faults of each kind there were.
func (h *Hands) Counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.counts)
}

// Made is how many faults there were.
func (h *Hands) Made() (sum int) {
	for _, c := range h.Counts() {
		sum += c
	}
	return sum
}

// Summary tells how many faults of each kind there were.
func (h *Hands) Summary() string {
	var text []string
	counts := h.Counts()
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("%s: %d", kind, counts[kind]))
	}
	return strings.Join(text, ", ")
}

// Sleep is what a fault lasts, or less where the faults are to end.
func Sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
