// Command leader elects one of several candidates. The leader does steps of a job, and
// counts them in a table of SQLite. After a while it lets the next candidate lead.
//
// A leader that was suspended for longer than its session timeout continues as if it
// still led, until it is notified. The table rejects its writes: each carries the fencing
// token of its term, the row keeps the greatest token that it has seen, and an update
// with a lower one changes no row.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper. Without it this process
// embeds one, zktest, and -db is of no use: a table belongs to the ZooKeeper whose tokens
// it has seen.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	electionPath   = "/leader-election"
	sessionTimeout = 10 * time.Second
	candidates     = 3
	stepsPerTerm   = 5
)

// deaf work is to go on when its ctx is done. Only the table stops it.
var deaf bool

func main() {
	file := flag.String("db", "", "the database's `file`; empty: one for this run")
	flag.BoolVar(&deaf, "deaf", false, "do not notice when a term ends")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *file); err != nil {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
}

// run has the candidates campaign until ctx is done or one of them fails.
func run(ctx context.Context, file string) error {
	if file == "" {
		dir, err := os.MkdirTemp("", "leader")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		file = filepath.Join(dir, "leader.db")
	}
	db, err := openTable(ctx, file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // what was to be written is known to be
	servers := os.Getenv("ZOOKEEPER_SERVERS")
	if servers == "" {
		cluster, err := zktest.New()
		if err != nil {
			return err
		}
		defer cluster.Close()
		servers = cluster.ConnectString()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error)
	for i := range candidates {
		name := fmt.Sprintf("candidate %d of process %d", i+1, os.Getpid())
		go func() { ended <- campaign(ctx, servers, name, db) }()
	}
	var failed error
	for range candidates {
		if err := <-ended; ctx.Err() == nil {
			failed = err
		}
		cancel() // all end with the first
	}
	return failed
}

// openTable opens the database, and makes the table where there is none.
func openTable(ctx context.Context, file string) (*sql.DB, error) {
	// Several processes may write: who finds it locked waits for so many milliseconds.
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS job (
			id INTEGER PRIMARY KEY, steps INTEGER, leader TEXT, token INTEGER);
		INSERT OR IGNORE INTO job VALUES (1, 0, '', 0)`); err != nil {
		return nil, fmt.Errorf("table in %s: %w", file, errors.Join(err, db.Close()))
	}
	return db, nil
}

// campaign is what each process does: it queues, and leads whenever its turn comes.
func campaign(ctx context.Context, servers, name string, db *sql.DB) error {
	client, err := recipes.Connect(ctx, servers, sessionTimeout)
	if err != nil {
		return err
	}
	defer client.Close()
	selector, err := recipes.NewLeaderSelector(
		client, electionPath, recipes.WithData([]byte(name)),
	)
	if err != nil {
		return err
	}
	return selector.Run(ctx, func(ctx context.Context, term *recipes.Hold) error {
		fmt.Printf("%s leads, with token %d\n", name, term.FencingToken())
		if deaf {
			ctx = context.WithoutCancel(ctx)
		}
		for range stepsPerTerm {
			err := step(ctx, db, name, term.FencingToken())
			if errors.Is(err, errFenced) {
				fmt.Println(err)
			}
			if err != nil {
				return err // where the term was lost it queues anew, else Run ends
			}
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil // the next candidate leads, and this one queues anew
	})
}

var errFenced = errors.New("a later leader has written: the term is over")

// step counts one step, unless a later leader has done so.
func step(ctx context.Context, db *sql.DB, leader string, token int64) error {
	result, err := db.ExecContext(ctx, `UPDATE job SET steps = steps + 1, leader = ?1,
		token = ?2 WHERE id = 1 AND token <= ?2`, leader, token)
	if err != nil {
		return fmt.Errorf("step of %s: %w", leader, err)
	}
	switch n, err := result.RowsAffected(); {
	case err != nil:
		return fmt.Errorf("step of %s: %w", leader, err)
	case n == 0: // no error to SQL
		return fmt.Errorf("step of %s with token %d: %w", leader, token, errFenced)
	}
	return nil
}
