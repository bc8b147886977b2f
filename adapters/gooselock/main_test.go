package gooselock_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gooselock"
)

// These make this binary a host: its ZooKeeper, its database, and whether it waits.
const (
	serversOfHost  = "GOOSELOCK_TEST_SERVERS"
	databaseOfHost = "GOOSELOCK_TEST_DATABASE"
	hostSkips      = "GOOSELOCK_TEST_SKIP"
)

const (
	// sessionTimeout is longer than a machine stands still: what ends a session is the
	// test.
	sessionTimeout = 30 * time.Second
	lockPath       = "/locks/migrate"
)

func TestMain(m *testing.M) {
	servers := os.Getenv(serversOfHost)
	if servers == "" {
		os.Exit(m.Run())
	}
	if err := beHost(context.Background(), servers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// beHost migrates, and reports each step on a line, with the id of its session.
func beHost(ctx context.Context, servers string) (err error) {
	client, err := recipes.Connect(ctx, servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	var locker lock.Locker
	if os.Getenv(hostSkips) != "" {
		locker, err = gooselock.NewWaitingAtMost(client, lockPath, 0)
	} else {
		locker, err = gooselock.New(client, lockPath)
	}
	if err != nil {
		return err
	}
	db, err := openDatabase(os.Getenv(databaseOfHost))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	session := client.SessionID()
	report := func(step string, details ...any) {
		fmt.Println(append([]any{step, session}, details...)...)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, nil,
		goose.WithLocker(locker), goose.WithGoMigrations(slowMigration(report)))
	if err != nil {
		return err
	}
	ctx, cancel := gooselock.WithLoss(ctx)
	defer cancel()
	report("starts")
	done, err := provider.Up(ctx)
	switch {
	case errors.Is(err, recipes.ErrBusy):
		report("skips")
	case errors.Is(err, recipes.ErrLockLost):
		report("lost", context.Cause(ctx))
	case err != nil:
		return err
	default:
		report("done", len(done))
	}
	return nil
}

// slowMigration takes until a line comes from standard input, or its ctx ends. It is not
// safe to do twice.
func slowMigration(report func(step string, details ...any)) *goose.Migration {
	up := func(ctx context.Context, db *sql.DB) error {
		report("begins")
		goOn := make(chan bool)
		go func() {
			bufio.NewScanner(os.Stdin).Scan()
			close(goOn)
		}()
		select {
		case <-goOn:
		case <-ctx.Done():
			report("ends")
			return context.Cause(ctx)
		}
		_, err := db.ExecContext(ctx, "CREATE TABLE orders (id INTEGER PRIMARY KEY)")
		return err
	}
	return goose.NewGoMigration(1, &goose.GoFunc{RunDB: up}, nil)
}

// openDatabase opens a database that several processes write to.
func openDatabase(file string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
}
