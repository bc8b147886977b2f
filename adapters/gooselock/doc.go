// Package gooselock is a locker for migrations by github.com/pressly/goose/v3: one host
// migrates at a time, and the others wait or skip. The lock is in ZooKeeper, so it works
// for databases that have none of their own, such as ClickHouse.
//
//	locker, err := gooselock.New(client, "/locks/migrate")
//	…
//	provider, err := goose.NewProvider(dialect, db, files, goose.WithLocker(locker))
//	…
//	ctx, cancel := gooselock.WithLoss(ctx)
//	defer cancel()
//	_, err = provider.Up(ctx)
//
// # A host that fails in the middle
//
// If a host is killed, the next one migrates once its session has ended, at most the
// session timeout (and two ticks of the servers) later. There is no row in a table that
// somebody must delete. The next host runs the migration again that had not been
// recorded. So a migration must be one transaction, or each of its statements must be
// safe to repeat (IF NOT EXISTS): no lock can know which of them the database has done.
//
// If a host loses the lock, the ctx of [WithLoss] ends, and with it the statement that
// waits for its answer. Up then returns an error that matches recipes.ErrLockLost, also
// without WithLoss, but then only when it has finished. A database may go on with what
// it has received, such as ClickHouse with its queue of distributed DDL.
package gooselock
