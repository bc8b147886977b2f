package main

import (
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

// dataKept is how much of a znode's data is kept, in bytes. What is stored there is up to
// a megabyte for each.
const dataKept = 4096

// A readings is what has been read of znodes. Who looks at a queue at each change reads
// only what is new: one who joins and leaves all the time would else have all data sent
// each time.
type readings struct {
	mu sync.Mutex
	of map[string]reading // by path; guarded by mu
}

// A reading is the data of a znode as of a write.
type reading struct {
	data  []byte // its first bytes
	mzxid int64  // of the write; no other write has the same
}

// get reads a znode, of which it returns the first bytes; its data only if they have
// changed.
func (r *readings) get(client *recipes.Client, path string) ([]byte, *zk.Stat, error) {
	r.mu.Lock()
	old, known := r.of[path]
	r.mu.Unlock()
	if known {
		exists, stat, err := client.Unwrap().Exists(client.ServerPath(path))
		switch {
		case err != nil:
			return nil, nil, err
		case !exists:
			return nil, nil, zk.ErrNoNode
		case stat.Mzxid == old.mzxid:
			return old.data, stat, nil
		}
	}
	data, stat, err := client.Get(path)
	if err != nil {
		return nil, nil, err
	}
	data = slices.Clone(data[:min(len(data), dataKept)]) // else all of it stays
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[string]reading{}
	}
	r.of[path] = reading{data: data, mzxid: stat.Mzxid}
	return data, stat, nil
}

// keep forgets all but the readings of a queue.
func (r *readings) keep(queue []recipes.Participant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := map[string]reading{}
	for _, p := range queue {
		if one, known := r.of[p.Node]; known {
			left[p.Node] = one
		}
	}
	r.of = left
}
