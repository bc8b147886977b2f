package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// holderData is what znodes hold without --data: "HOST (pid PID, COMMAND)", of zklock's
// process and of the program's name alone, since arguments can be secret. It is what
// people read in any tool that shows data as text, and what busy says: one line of UTF-8,
// whatever the program is called. A run inside another also has the other's session.
func holderData(argv []string) []byte {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	within := ""
	if outer := os.Getenv(sessionVariable); isSession.MatchString(outer) {
		within = ", in a run of session " + outer
	}
	return fmt.Appendf(nil, "%s (pid %d, %s%s)", host, os.Getpid(),
		text.Printable(filepath.Base(argv[0])), within)
}

// sessionVariable tells a zklock that CMD runs the session of the one that runs CMD: what
// the one holds and the other waits for is one program's.
const sessionVariable = "ZKLOCK_SESSION"

var isSession = regexp.MustCompile(`^0x[0-9a-f]+$`)

// lock are the options of a lock for the CMD of a command line: the defaults, then what
// was given.
func (t *target) lock(cmd *cli.Command, given []recipes.Option) []recipes.Option {
	argv := cmd.Args().Tail()
	if argv[0] == "--" {
		argv = argv[1:]
	}
	return append([]recipes.Option{
		recipes.WithACL(t.acl), recipes.WithData(holderData(argv)),
	}, given...)
}

// errBusy says that others have the lock.
var errBusy = errors.New("not acquired")

const (
	// busyWithin bounds how long zklock asks who has the lock.
	busyWithin = time.Second
	// busyReads bounds how many participants are read for that.
	busyReads = 100
)

// somebody stands for who has the lock where that is not known.
const somebody = "others have the lock"

// busy is errBusy, and says who has the lock as far as ZooKeeper tells at once.
func (w *wanted) busy(ctx context.Context, client *recipes.Client) error {
	who := w.holder(ctx, client)
	if who == "" {
		who = somebody
	}
	return fmt.Errorf("%w: %s", errBusy, who)
}

// holder says who has the lock; "" if that is not known, or nobody has it.
func (w *wanted) holder(ctx context.Context, client *recipes.Client) string {
	ctx, cancel := context.WithTimeout(ctx, busyWithin)
	defer cancel()
	first := &head{Client: client, most: busyReads}
	rows, left, err := first.inspect(ctx, w.path)
	own := fmt.Sprintf("0x%x", uint64(client.SessionID()))
	rows = slices.DeleteFunc(rows, func(r queues.Row) bool {
		return r.Session == own || !w.competes(r)
	})
	at := slices.IndexFunc(rows, func(r queues.Row) bool {
		return r.State == queues.Holds
	})
	if err != nil || at < 0 {
		return ""
	}
	rows[at].Since = heldSince(client, rows[at])
	return sentenceOf(rows, at, left, time.Now())
}

// competes tells whether a participant is in the queue of what is wanted: a semaphore's
// is another one than that of the locks of the same path.
func (w *wanted) competes(r queues.Row) bool {
	lease := r.Kind == "lease" || zkpath.Parent(r.Node) != w.path
	return r.Kind != "latch" && lease == (w.kind == leased)
}

// sentenceOf says who holds, the first of them at a position, and how many wait. More may
// wait than there are rows.
func sentenceOf(rows []queues.Row, at, left int, now time.Time) string {
	who := text.Shorten(text.Printable(rows[at].Data), dataMost)
	switch {
	case rows[at].Session == queues.NoSession:
		who = text.Printable(rows[at].Node) + ", of no session (see zklock doctor),"
	case who == "":
		who = "session " + rows[at].Session
	}
	holding := 0
	for _, r := range rows {
		if r.State == queues.Holds {
			holding++
		}
	}
	text := who + " has held it since " + clockTime(rows[at].Since, now)
	if holding > 1 {
		text += fmt.Sprintf(", %d more hold it", holding-1)
	}
	switch waiting := len(rows) - holding; {
	case left > 0:
		text += fmt.Sprintf(", more than %d wait", waiting)
	case waiting == 1:
		text += ", 1 waits"
	case waiting > 1:
		text += fmt.Sprintf(", %d wait", waiting)
	}
	return text
}

// clockTime is a time of today without the date.
func clockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// noteAfter is for how long a run waits at most of which the time of its znode is that of
// its hold.
const noteAfter = time.Second

// note writes the data once more where the lock came late, so that the znode tells since
// when it is held; ZooKeeper notes no more than when it was created.
func (h *holding) note(client *recipes.Client, began time.Time) {
	if h == nil || time.Since(began) < noteAfter {
		return
	}
	go func() {
		data, _, err := client.Get(h.hold.Path())
		if err == nil {
			_, _ = client.Set(h.hold.Path(), data, 0) // else it tells when it was created
		}
	}()
}

// revokeRequest is what AttemptRevoke makes the data.
const revokeRequest = "__REVOKE__"

// heldSince is when the holder has noted that it holds, else when its znode was created.
func heldSince(client *recipes.Client, r queues.Row) time.Time {
	_, stat, err := client.Get(r.Node)
	if err != nil || stat.Version == 0 || r.Data == revokeRequest {
		return r.Since
	}
	return time.UnixMilli(stat.Mtime)
}
