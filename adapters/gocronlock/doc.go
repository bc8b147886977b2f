// Package gocronlock lets the schedulers of github.com/go-co-op/gocron/v2 on several
// hosts share their jobs: one host runs a job at each tick. The lock, or the leadership,
// is one of package recipes, in ZooKeeper.
//
//	locker, err := gocronlock.NewLocker(client, "/cron")
//	…
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	…
//	_, err = scheduler.NewJob(
//		gocron.CronJob("*/5 * * * *", false),
//		gocronlock.LockedTask(locker,
//			func(ctx context.Context, hold *recipes.Hold) error {
//				return report(ctx, hold.FencingToken())
//			}),
//		gocron.WithName("report"))
//
// gocron gives a job the same ctx whether its lock lasts or not, and ignores what Unlock
// returns. [LockedTask] and [LeaderTask] make up for that: they end the ctx of the job at
// the loss, and return the loss to gocron as the error of the job, for
// gocron.AfterJobRunsWithError and monitors. A job without them works, but nobody
// notifies it of a loss.
//
// # Locker or Elector
//
// With [NewLocker] the jobs spread over the hosts. With [NewElector] one host runs all of
// them until it stops or loses the leadership; at that moment a tick can be skipped, or
// can run twice if the clocks of two hosts differ.
//
// # What a tick can see
//
//   - A host that was killed blocks its jobs until its session ends, at most the session
//     timeout (and two ticks of the servers) later. Until then ticks are skipped.
//   - If ZooKeeper is unreachable, ticks are skipped: after a second, with an error that
//     matches recipes.ErrUnavailable.
//   - A job runs twice at one tick if its host loses the lock after the job has done its
//     work. Reject the second one by the fencing token, or make a repetition safe.
package gocronlock
