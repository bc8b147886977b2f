package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// States of a mark.
const (
	started = "started" // under the lock; without it its machine is gone
	done    = "done"
	failed  = "failed"
)

// A mark says how far the last period is.
type mark struct {
	Period int64     `json:"period"`
	State  string    `json:"state"`
	Code   int       `json:"code"`
	Host   string    `json:"host"`
	Time   time.Time `json:"time"`
	Per    string    `json:"per"` // "": it was not noted
	// Starting is of a CMD that may turn out not to start: then the mark is taken back.
	// For those that come to the lock, the period is used up all the same.
	Starting bool `json:"starting,omitempty"`
}

// A record is the znode with the mark.
type record struct {
	client *recipes.Client
	key    string
	per    time.Duration // of a period; 0: not known here
	now    int64         // the present period
	acl    []zk.ACL      // of the znode
}

// isPeriod tells whether the periods of such a length can be numbered by periodOf.
func isPeriod(per time.Duration) bool {
	return per >= time.Second && per%time.Second == 0
}

// longPer is longer than any --per that makes sense: until somebody deletes the record,
// no other job runs CMD.
const longPer = 366 * 24 * time.Hour

// isLong tells whether a mark is of a longer one.
func (m mark) isLong() bool {
	per, err := time.ParseDuration(m.Per)
	return err == nil && per > longPer
}

// isLocal tells whether the periods of such a length depend on the local time.
func isLocal(per time.Duration) bool { return per%(24*time.Hour) == 0 }

// periodOf numbers the periods. Those of whole days begin at midnight by the local time,
// as cron has it: by UTC a job at half past midnight would fall into one day twice when
// summer begins.
func periodOf(t time.Time, per time.Duration) int64 {
	since := t.Unix()
	if isLocal(per) {
		_, offset := t.Zone()
		since += int64(offset)
	}
	return since / int64(per/time.Second)
}

func (r *record) path() string { return zkpath.Join(r.key, "/"+queues.MarkName) }

// read returns the mark, the zero one where there is none.
func (r *record) read() (mark, error) {
	if _, err := r.client.Sync(r.key); err != nil {
		return mark{}, err
	}
	data, stat, err := r.client.Get(r.path())
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return mark{Period: -1}, nil
	case err != nil:
		return mark{}, fmt.Errorf("read %s: %w", r.path(), err)
	}
	m, err := parseMark(data, time.UnixMilli(stat.Mtime), r.per)
	if err != nil {
		return mark{}, &badMark{path: r.path(), why: err}
	}
	return m, nil
}

// A badMark is a record on which nobody can rely. It does not say that CMD has run.
type badMark struct {
	path string
	why  error
}

func (e *badMark) Error() string {
	return fmt.Sprintf("the record %s is none of this job: %v; until somebody deletes "+
		"it, CMD does not run", e.path, e.why)
}

// parseMark refuses what "zklock once" cannot have noted, of the length of period per, at
// a time by the servers' clock: a forged mark could end all runs without a word. A
// machine whose clock is ahead by more than half a period does not note anything.
func parseMark(data []byte, noted time.Time, per time.Duration) (m mark, err error) {
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("it holds something else: %s",
			text.Shorten(err.Error(), dataMost))
	}
	theirs := per
	if m.Per != "" {
		if theirs, err = time.ParseDuration(m.Per); err != nil || !isPeriod(theirs) {
			return m, fmt.Errorf("it has periods of %q", text.Shorten(m.Per, dataMost))
		}
	}
	theirs = max(theirs, time.Second)
	switch {
	case per != 0 && theirs != per:
		return m, fmt.Errorf("it is of --per %v, not of --per %v", theirs, per)
	case m.State != started && m.State != done && m.State != failed:
		return m, fmt.Errorf("it has the state %q", text.Shorten(m.State, dataMost))
	case m.Period < 0:
		return m, fmt.Errorf("it is of period %d", m.Period)
	case m.Period > periodOf(noted.Add(theirs/2), theirs):
		return m, fmt.Errorf("it is of period %d, and was written before that, in "+
			"period %d", m.Period, periodOf(noted, theirs))
	}
	return m, nil
}

// note notes a state in one transaction with the check that the lock is held.
func (r *record) note(hold *recipes.Hold, m mark) error {
	host, _ := os.Hostname()
	m.Period, m.Host, m.Per = r.now, host, r.per.String()
	m.Time = time.Now().Truncate(time.Second)
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return r.put(hold, data)
}

func (r *record) put(hold *recipes.Hold, data []byte) error {
	_, err := hold.Multi(&zk.SetDataRequest{Path: r.path(), Data: data, Version: -1})
	if errors.Is(err, zk.ErrNoNode) {
		_, err = hold.Multi(&zk.CreateRequest{
			Path: r.path(), Data: data, Acl: r.acl,
		})
	}
	return err
}

// begin notes that CMD starts. takeBack makes the record what it was before.
func (r *record) begin(hold *recipes.Hold) (takeBack func() error, err error) {
	before, _, err := r.client.Get(r.path())
	missing := errors.Is(err, zk.ErrNoNode)
	if err != nil && !missing {
		return nil, err
	}
	takeBack = func() error {
		if missing {
			_, err := hold.Multi(&zk.DeleteRequest{Path: r.path(), Version: -1})
			return err
		}
		return r.put(hold, before)
	}
	return takeBack, r.note(hold, mark{State: started, Starting: true})
}

// follow calls f with the mark, now and at each change, until ctx is done.
func (r *record) follow(ctx context.Context, f func(mark)) {
	for ctx.Err() == nil {
		changed, err := r.look(f)
		pause := make(<-chan time.Time)
		if err != nil {
			pause = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-pause:
		}
	}
}

func (r *record) look(f func(mark)) (<-chan zk.Event, error) {
	exists, _, changed, err := r.client.Unwrap().ExistsW(r.client.ServerPath(r.path()))
	if err != nil || !exists {
		return changed, err
	}
	m, err := r.read()
	if err == nil {
		f(m)
	}
	return changed, err
}

// checkClock compares the clock of this machine with that of the servers, which have
// noted when the lock's znode was made: after before, and until now.
func (r *record) checkClock(
	hold *recipes.Hold, before time.Time, most time.Duration,
) error {
	_, stat, err := r.client.Get(hold.Path())
	if err != nil {
		return err
	}
	if off := clockOff(time.UnixMilli(stat.Ctime), before, time.Now()); off.Abs() > most {
		return fmt.Errorf("the clock of this machine differs from ZooKeeper's by %v",
			off.Round(time.Second))
	}
	return nil
}

// clockOff is how far this machine's clock is ahead, at least, if something that the
// servers have noted for a time was done here between two others.
func clockOff(noted, after, before time.Time) time.Duration {
	switch {
	case noted.Before(after):
		return after.Sub(noted)
	case noted.After(before):
		return before.Sub(noted)
	}
	return 0
}
