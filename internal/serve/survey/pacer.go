package survey

import (
	"context"
	"sync"
	"time"
)

// A pacer spaces requests evenly. After a rest, those of a tenth of a second may be sent
// at once.
type pacer struct {
	every, rest time.Duration

	mu  sync.Mutex // guards what follows
	due time.Time  // when the last one was due
}

func newPacer(perSecond float64) pacer {
	every := time.Duration(float64(time.Second) / perSecond)
	return pacer{every: every, rest: max(every, time.Second/10)}
}

// wait returns when the next request may be sent.
func (p *pacer) wait(ctx context.Context) error {
	p.mu.Lock()
	if rested := time.Now().Add(-p.rest); p.due.Before(rested) {
		p.due = rested
	}
	p.due = p.due.Add(p.every)
	due := p.due
	p.mu.Unlock()
	sleep(ctx, time.Until(due))
	return context.Cause(ctx)
}
