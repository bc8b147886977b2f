// Command example migrates a database with goose on several hosts that start together.
// One migrates; the others wait, and find nothing to do.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper, for one process per host
// with -hosts 1. Without it this process embeds one, zktest. The database is SQLite here.
package main

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gooselock"
	"github.com/zkrecipes/recipes/zktest"
)

//go:embed migrations/*.sql
var files embed.FS

func main() {
	database := flag.String("db", "example.db", "the `file` of the database")
	hosts := flag.Int("hosts", 3, "how many hosts this process plays")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *database, *hosts); err != nil {
		fmt.Fprintln(os.Stderr, "example:", err)
		os.Exit(1)
	}
}

// run plays the hosts, which start together.
func run(ctx context.Context, database string, hosts int) error {
	servers := os.Getenv("ZOOKEEPER_SERVERS")
	if servers == "" {
		cluster, err := zktest.New()
		if err != nil {
			return err
		}
		defer cluster.Close()
		servers = cluster.ConnectString()
	}
	ended := make(chan error)
	for i := range hosts {
		go func() { ended <- migrate(ctx, servers, database, fmt.Sprint("host ", i+1)) }()
	}
	var errs []error
	for range hosts {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// migrate is what each host does when it starts.
func migrate(ctx context.Context, servers, database, host string) (err error) {
	client, err := recipes.Connect(ctx, servers, 10*time.Second)
	if err != nil {
		return err
	}
	defer client.Close()
	// goose reads its table before it asks for the lock, while another host may write.
	db, err := sql.Open("sqlite", "file:"+database+"?_pragma=busy_timeout(60000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	locker, err := gooselock.New(client, "/locks/migrate")
	if err != nil {
		return err
	}
	migrations, err := fs.Sub(files, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations,
		goose.WithLocker(locker))
	if err != nil {
		return err
	}
	ctx, cancel := gooselock.WithLoss(ctx) // ends if the lock is lost
	defer cancel()
	done, err := provider.Up(ctx)
	fmt.Printf("%s: %d migrations\n", host, len(done))
	return err
}
