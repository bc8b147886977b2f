package seqnode

import (
	"context"
	"slices"
	"time"

	"github.com/zkrecipes/recipes/internal/order"
	"github.com/zkrecipes/recipes/internal/wait"
)

// A patience bounds how long a waiter waits for anybody ahead to leave. A waiter sleeps
// until its predecessor goes, and hears of nobody else ahead. So it lists the queue each
// time that the patience is due. It belongs to one waiter: a lost znode takes it along.
type patience struct {
	every time.Duration
	due   <-chan time.Time
	ahead int // how many were ahead when the queue was last looked at
}

// arm begins the patience, before the first sleep.
func (w *waiter) arm() {
	if w.patience == nil && w.request.Patience > 0 {
		every := w.request.Patience + 2*time.Since(w.asked)
		w.patience = &patience{every, time.After(every), w.turn.ahead}
	}
}

// stoodStill lists the queue, and returns wait.ErrBusy if nobody ahead has left since the
// last look. Otherwise the patience starts over.
func (w *waiter) stoodStill(ctx context.Context) error {
	l, err := w.cohort.list(ctx, w.Member, false)
	p := w.patience
	p.due = time.After(p.every)
	if err != nil {
		return err
	}
	own, before := w.node.Name(), p.ahead
	at := slices.IndexFunc(l.names, func(n order.Name) bool { return n.Text == own })
	switch {
	case at < 0: // it is gone, as the next decision finds, or the list does not count
		return nil
	case at >= before:
		return wait.ErrBusy
	}
	p.ahead = at
	return nil
}
