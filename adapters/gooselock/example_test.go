package gooselock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/adapters/gooselock"
	"github.com/zkrecipes/recipes/zktest"
)

// A host that does not wait skips its migrations while another one migrates.
func ExampleNewWaitingAtMost() {
	cluster, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()
	ctx := context.Background()
	client, err := recipes.Connect(ctx, cluster.ConnectString(), 10*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	another, err := gooselock.New(client, "/locks/migrate")
	if err != nil {
		log.Fatal(err)
	}
	if err := another.Lock(ctx, nil); err != nil { // as goose does
		log.Fatal(err)
	}

	locker, err := gooselock.NewWaitingAtMost(client, "/locks/migrate", 0)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := openDatabase(filepath.Join(dir, "example.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, nil,
		goose.WithLocker(locker),
		goose.WithGoMigrations(goose.NewGoMigration(1, nil, nil)))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := gooselock.WithLoss(ctx)
	defer cancel()
	_, err = provider.Up(ctx)
	fmt.Println("another host migrates:", errors.Is(err, recipes.ErrBusy))
	if err := another.Unlock(ctx, nil); err != nil {
		log.Fatal(err)
	}
	done, err := provider.Up(ctx)
	fmt.Println(len(done), "migration", err)
	// Output:
	// another host migrates: true
	// 1 migration <nil>
}
