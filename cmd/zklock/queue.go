package main

import (
	"context"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
)

// A head is a Conn that shows only the first participants of each directory: whoever
// looks at a queue reads a znode for each that is shown, and a queue may have any length.
type head struct {
	*recipes.Client
	most  int          // in each directory
	left  atomic.Int64 // how many were not shown
	known *readings    // what need not be read again; nil: nothing
}

// Get implements [recipes.Conn].
func (h *head) Get(path string) ([]byte, *zk.Stat, error) {
	if h.known == nil {
		return h.Client.Get(path)
	}
	return h.known.get(h.Client, path)
}

// Children implements [recipes.Conn].
func (h *head) Children(path string) ([]string, *zk.Stat, error) {
	children, stat, err := h.Client.Children(path)
	if err != nil {
		return nil, nil, err
	}
	first := queues.Queued("", children)
	if more := len(first) - h.most; more > 0 {
		h.left.Add(int64(more))
		first = first[:h.most]
	}
	return first, stat, nil
}

// inspect returns the queue at a path, and how many participants are in it beyond.
func (h *head) inspect(
	ctx context.Context, path string,
) (rows []queues.Row, left int, err error) {
	rows, left, err = h.members(ctx, path)
	return queues.Pair(rows), left, err
}

// members is inspect with a row for each znode.
func (h *head) members(
	ctx context.Context, path string,
) (rows []queues.Row, left int, err error) {
	h.left.Store(0)
	queue, err := recipes.Inspect(ctx, h, path)
	if err == nil && h.known != nil {
		h.known.keep(queue)
	}
	return queues.RowsOf(path, queue), int(h.left.Load()), err
}
