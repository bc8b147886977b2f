package main

import (
	"context"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

// deadlocks looks for those below a path.
func (d *doctor) deadlocks(ctx context.Context) error {
	all := queues.NewCrowd()
	locks := 0
	first := &head{Client: d.client, most: listMost}
	w := &walk{
		client: d.client, most: listMost * looksPerRow, each: listMost,
		visit: func(path string) error {
			ctx, cancel := context.WithTimeoutCause(ctx, answerLimit,
				recipes.ErrUnavailable)
			defer cancel()
			rows, left, err := first.members(ctx, path)
			all.Add(rows)
			locks++
			d.unseen(path, left, "in the queue")
			return err
		},
		skip: func(path string, err error) {
			d.doubt("%s was not looked at: %v", path, err)
		},
	}
	if err := w.down(ctx, d.path); err != nil {
		return err
	}
	if w.left > 0 {
		d.doubt("%s: %d znodes, and what is below them, were not looked at", d.path,
			w.left)
	}
	all.Settle()
	circles := all.Circles()
	if len(circles) == 0 {
		d.well("%s: no session waits for itself by way of others, in %d locks", d.path,
			locks)
	}
	for _, circle := range circles {
		d.find("possible: %s", queues.CircleText(circle))
		for _, one := range circle {
			d.doubt("session %s is %q", one.Who, text.Shorten(one.Data, dataMost))
		}
	}
	if d.ill {
		return exitWith(exitFindings)
	}
	return nil
}
