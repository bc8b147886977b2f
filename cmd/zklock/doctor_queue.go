package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/observe"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// lookMost is how many znodes of a directory the doctor looks at: of those in the queue,
// and of the others.
const lookMost = 1000

// queue looks at the directories of the lock.
func (d *doctor) queue(ctx context.Context) error {
	for _, sub := range []string{"", observe.LeasesDir, observe.GateDir} {
		dir := zkpath.Join(d.path, sub)
		children, stat, err := d.client.Children(dir)
		switch {
		case errors.Is(err, zk.ErrNoNode) && sub == "":
			d.well("%s does not exist: nobody uses it, or it was deleted when unused, "+
				"as it should be", dir)
			return nil
		case errors.Is(err, zk.ErrNoNode):
			continue
		case err != nil:
			return unreadable(dir, err)
		}
		if err := d.participants(ctx, dir, sub, children); err != nil {
			return err
		}
		if sub == "" && queues.IsLock(children) {
			if err := d.ages(ctx); err != nil {
				return err
			}
		}
		if err := d.others(ctx, dir, sub, children); err != nil {
			return err
		}
		if sub == "" && slices.Contains(children, queues.MarkName) {
			if err := d.record(); err != nil {
				return err
			}
		}
		if err := d.rights(ctx, dir, sub, children); err != nil {
			return err
		}
		d.order(dir, sub, children)
		d.sequence(dir, stat)
		if dir == "/" && !queues.IsSemaphore(children) {
			return nil // its locks are below it, as in "/locks", and not its own
		}
	}
	return nil
}

// participants looks for znodes in a queue that belong to nobody.
func (d *doctor) participants(
	ctx context.Context, dir, sub string, children []string,
) error {
	first, more := cut(queues.Queued(sub, children), lookMost)
	present := 0
	var orphans []string
	for _, child := range first {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		node := zkpath.Join(dir, child)
		// To ask needs no permission: whoever forbids to read a znode hides nothing.
		exists, stat, err := d.client.Unwrap().Exists(d.client.ServerPath(node))
		switch {
		case err != nil:
			return err
		case !exists:
			continue
		case !queues.Owned(stat):
			orphans = append(orphans, node)
		}
		present++
	}
	d.alike(d.find, dir, orphans, "belongs to no session: it blocks the queue until "+
		"somebody deletes it (zklock evict)")
	d.unseen(dir, more, "in the queue")
	switch {
	case len(orphans) > 0:
	case more > 0:
		d.well("%s: the first %d znodes in the queue have an owner", dir, present)
	case present == 0 && sub == "" && queues.IsSemaphore(children):
		d.well("%s is a semaphore", dir)
	case present == 0:
		d.well("%s: nobody is in the queue", dir)
	case present == 1:
		d.well("%s: 1 znode in the queue, with an owner", dir)
	default:
		d.well("%s: %d znodes in the queue, all with an owner", dir, present)
	}
	return nil
}

// ages tells for how long the lock has been held, and how many wait.
func (d *doctor) ages(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, recipes.ErrUnavailable)
	defer cancel()
	first := &head{Client: d.client, most: lookMost}
	rows, left, err := first.inspect(ctx, d.path)
	if err != nil {
		return err
	}
	now := time.Now()
	at, waiting, since, blocked := -1, 0, now, false
	var ages []time.Duration
	for i, r := range rows {
		if r.Since.IsZero() {
			continue // it may not be read
		}
		ages = append(ages, now.Sub(r.Since))
		switch {
		case r.State == queues.Waits:
			waiting++
			since = earlier(since, r.Since)
		case r.Session == queues.NoSession:
			blocked = true // unless leases are left, or other readers hold it
		case at < 0 || r.Since.Before(rows[at].Since):
			at = i
		}
	}
	behind := ""
	if waiting > 0 {
		number := fmt.Sprint(waiting)
		if left > 0 {
			number += " or more" // they were not read
		}
		behind = fmt.Sprintf("; %s waiting, the first since %s", number,
			clockTime(since, now))
	}
	if at < 0 {
		if blocked {
			d.find("%s: nobody holds it%s", d.path, behind)
		}
		return nil
	}
	age := now.Sub(heldSince(d.client, rows[at]))
	text := fmt.Sprintf("%s: held for %v by %s, session %s (%q)", d.path,
		age.Round(time.Second), rows[at].Node, rows[at].Session,
		text.Shorten(rows[at].Data, dataMost)) + behind
	if isOld(age, ages) {
		d.doubt("%s; that is far longer than the others have been here: is it stuck?",
			text)
		return nil
	}
	d.well("%s", text)
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// isOld tells whether an age is far from those of all that are in a queue.
func isOld(age time.Duration, all []time.Duration) bool {
	const far, least = 10, time.Minute
	slices.Sort(all)
	return age > least && age > far*all[len(all)/2]
}

// others looks at the znodes that are not in a queue: each may be the directory of
// another lock. In the root, which nobody deletes, each program has its own.
func (d *doctor) others(ctx context.Context, dir, sub string, children []string) error {
	queue := queues.In(sub)
	all := slices.DeleteFunc(slices.Clone(children), func(child string) bool {
		known := child == observe.LeasesDir || child == observe.GateDir ||
			child == queues.MarkName
		return sub == "" && known || len(queue.Among([]string{child})) > 0
	})
	slices.Sort(all)
	first, more := cut(all, lookMost)
	var strangers, closed []string
	for _, child := range first {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		node := zkpath.Join(dir, child)
		inside, stat, err := d.client.Children(node)
		switch {
		case errors.Is(err, zk.ErrNoNode) || node == "/zookeeper":
		case errors.Is(err, zk.ErrNoAuth):
			closed = append(closed, node)
		case err != nil:
			return err
		case dir != "/" && stat.EphemeralOwner != queues.Container &&
			!queues.IsLock(inside):
			strangers = append(strangers, node)
		}
	}
	d.alike(d.find, dir, strangers, "is unrelated: no lock creates such a znode; it is "+
		"safe, but keeps the parent znode from being deleted")
	d.alike(d.doubt, dir, closed, "was not looked at: no permission to read it")
	d.unseen(dir, more, "that are not in the queue")
	return nil
}

// cut returns the first ones, and how many more there are.
func cut(all []string, most int) (first []string, more int) {
	first = all[:min(len(all), most)]
	return first, len(all) - len(first)
}

// alike tells of some znodes the same, and how many more it is true of.
func (d *doctor) alike(
	tell func(format string, args ...any), dir string, nodes []string, what string,
) {
	first, more := cut(nodes, alikeShown)
	for _, node := range first {
		tell("%s %s", node, what)
	}
	if more > 0 {
		tell("%s: and %d more znodes of which each %s", dir, more, what)
	}
}

// unseen says how many znodes were not looked at.
func (d *doctor) unseen(dir string, more int, which string) {
	if more > 0 {
		d.doubt("%s: %d more znodes %s were not looked at", dir, more, which)
	}
}

// record looks at what "zklock once" has noted.
func (d *doctor) record() error {
	notes := &record{client: d.client, key: d.path}
	m, err := notes.read()
	switch wrong := (&badMark{}); {
	case errors.As(err, &wrong):
		d.find("%v", wrong)
	case errors.Is(err, zk.ErrNoAuth):
		d.doubt("%s was not looked at: no permission to read it", notes.path())
	case err != nil:
		return err
	case m.Per == "" && m.Period >= 0: // else it has just gone
		d.doubt("%s: the record does not say of which --per it is: nobody can tell here "+
			"whether it keeps CMD from running", notes.path())
	case m.isLong():
		d.find("the record %s is of --per %s, more than a year: until somebody deletes "+
			"it, zklock once with another --per does not run CMD", notes.path(), m.Per)
	default:
		d.well("%s: the record of zklock once is sound", notes.path())
	}
	return nil
}

// sequence tells how many znodes a directory has numbered.
func (d *doctor) sequence(dir string, stat *zk.Stat) {
	at, near := queues.Counter(stat)
	if near {
		d.find("%s: the sequence counter is at %d, near its limit of %d: delete the "+
			"parent znode while nobody uses it", dir, at, queues.CounterLimit)
		return
	}
	d.well("%s: the sequence counter is at %d of %d", dir, at, queues.CounterLimit)
}
