package gocronlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-co-op/gocron/v2"

	"github.com/zkrecipes/recipes"
)

// LockedTask returns a task that runs under the lock that by, a locker of this package,
// has acquired for it. The ctx of run ends with the job's, and at the loss of the lock,
// with a cause that matches recipes.ErrLockLost. Then run should return context.Cause of
// it. If the lock is lost while run runs, the error of the job matches
// recipes.ErrLockLost, whatever run returns. hold has the fencing token.
func LockedTask(
	by gocron.Locker, run func(ctx context.Context, hold *recipes.Hold) error,
) gocron.Task {
	return gocron.NewTask(lockedTask{by, run}.do)
}

type lockedTask struct {
	by  gocron.Locker
	run func(ctx context.Context, hold *recipes.Hold) error
}

func (t lockedTask) do(ctx context.Context) error {
	l, ok := t.by.(*locker)
	if !ok {
		return fmt.Errorf("gocronlock: LockedTask: the locker is a %T", t.by)
	}
	hold := l.take(ctx)
	if hold == nil {
		return errTaken
	}
	return under(ctx, hold, t.run)
}

var errTaken = errors.New("gocronlock: LockedTask: no lock for this run; " +
	"the job does not use this locker, or a later run has the lock")

// LeaderTask returns a task that runs while this host leads, according to by, an elector
// of this package. It does for a leadership what [LockedTask] does for a lock. If the
// leadership is lost between the tick and the task, the error of the job matches
// [ErrNotLeader], and run does not run.
func LeaderTask(
	by gocron.Elector, run func(ctx context.Context, term *recipes.Hold) error,
) gocron.Task {
	return gocron.NewTask(leaderTask{by, run}.do)
}

type leaderTask struct {
	by  gocron.Elector
	run func(ctx context.Context, term *recipes.Hold) error
}

func (t leaderTask) do(ctx context.Context) error {
	e, ok := t.by.(*elector)
	if !ok {
		return fmt.Errorf("gocronlock: LeaderTask: the elector is a %T", t.by)
	}
	term := e.leads()
	if term == nil {
		return ErrNotLeader
	}
	return under(ctx, term, t.run)
}

// under runs a job, and adds a loss of which its error says nothing.
func under(
	ctx context.Context, hold *recipes.Hold,
	run func(ctx context.Context, hold *recipes.Hold) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the hold can last longer
	err := run(hold.Context(ctx), hold)
	if loss := hold.Err(); loss != nil && !errors.Is(err, recipes.ErrLockLost) {
		err = errors.Join(err, loss)
	}
	return err
}
