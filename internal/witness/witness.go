// Package witness finds out whether servers forget what they have confirmed. A [Witness]
// writes to a znode of its own all the time, and takes no lock: what it finds is no lock
// library's fault. On top of such servers no lock can be right: znodes come back that
// their sessions deleted long ago, and nobody tends them.
//
// It has one goroutine, from [Start] to [Witness.Finish].
package witness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A Conn is a connection of the witness's own, best straight to the servers. Start takes
// it, and Finish closes it.
type Conn interface {
	Create(path string, data []byte, flags int32, acl []zk.ACL) (string, error)
	Set(path string, data []byte, version int32) (*zk.Stat, error)
	Close()
}

// A Config says what a witness does.
type Config struct {
	Path string // of its znode, whose parent exists
	ACL  []zk.ACL
	Pace time.Duration // between two writes
	// Seen is called for each write that was confirmed, with how long that took. May be
	// nil.
	Seen func(stat *zk.Stat, took time.Duration)
}

// A Witness writes: a version that has not grown tells of a confirmed write that is gone.
type Witness struct {
	Config
	conn  Conn
	stop  context.CancelFunc
	ended sync.WaitGroup

	// What follows may be read once the witness has ended.
	confirmed *zk.Stat // of the last confirmed write, nil before the first one
	forgotten error    // what the servers forgot, nil as long as that is nothing
}

// Start starts one, which ends with Finish.
func Start(conn Conn, c Config) *Witness {
	ctx, cancel := context.WithCancel(context.Background())
	w := &Witness{Config: c, conn: conn, stop: cancel}
	w.ended.Go(func() { w.run(ctx) })
	return w
}

// run writes until it is to end, or until something is forgotten. A write that fails is
// tried again: whether the servers have done it does not matter here.
func (w *Witness) run(ctx context.Context) {
	for ctx.Err() == nil && w.forgotten == nil {
		sent := time.Now()
		stat, err := w.conn.Set(w.Path, nil, -1)
		switch {
		case err == nil:
			w.see(stat, time.Since(sent))
		case errors.Is(err, zk.ErrNoNode) && w.confirmed != nil:
			w.forgotten = fmt.Errorf(
				"the write %d of %s was confirmed (zxid %#x), and it does not exist",
				w.confirmed.Version, w.Path, w.confirmed.Mzxid,
			)
		case errors.Is(err, zk.ErrNoNode):
			_, _ = w.conn.Create(w.Path, nil, zk.FlagPersistent, w.ACL)
		}
		select {
		case <-time.After(w.Pace):
		case <-ctx.Done():
		}
	}
}

func (w *Witness) see(stat *zk.Stat, took time.Duration) {
	if last := w.confirmed; last != nil && stat.Version <= last.Version {
		w.forgotten = fmt.Errorf(
			"the write %d of %s was confirmed (zxid %#x), and a later one (zxid %#x) "+
				"is the write %d",
			last.Version, w.Path, last.Mzxid, stat.Mzxid, stat.Version,
		)
	}
	w.confirmed = stat
	if w.Seen != nil {
		w.Seen(stat, took)
	}
}

// Finish ends the witness and returns what the servers have forgotten.
func (w *Witness) Finish() error {
	w.stop()
	w.conn.Close() // ends a write that waits for a server
	w.ended.Wait()
	return w.forgotten
}
