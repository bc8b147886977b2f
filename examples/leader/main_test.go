package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func table(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := openTable(t.Context(), file)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// row is what the table has.
func row(t *testing.T, db *sql.DB) (steps int, leader string) {
	t.Helper()
	require.NoError(t, db.QueryRowContext(
		t.Context(), "SELECT steps, leader FROM job",
	).Scan(&steps, &leader))
	return steps, leader
}

func TestTheCandidatesTakeTurns(t *testing.T) {
	t.Setenv("ZOOKEEPER_SERVERS", zktest.Start(t).ConnectString())
	file := filepath.Join(t.TempDir(), "leader.db")
	db := table(t, file)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, file) }()
	led := map[string]bool{}
	require.Eventually(t, func() bool {
		if steps, leader := row(t, db); steps > 0 {
			led[leader] = true
		}
		return len(led) == candidates
	}, time.Minute, 20*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

// A leader is deaf to the end of its term, as one that was paused, and writes when
// another one has led.
func TestTheTableRefusesAnEarlierLeader(t *testing.T) {
	cluster := zktest.Start(t)
	db := table(t, filepath.Join(t.TempDir(), "leader.db"))
	lead := func(
		f func(ctx context.Context, term *recipes.Hold) error,
	) (*recipes.Client, <-chan error) {
		client, err := recipes.Connect(
			t.Context(), cluster.ConnectString(), sessionTimeout,
		)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		selector, err := recipes.NewLeaderSelector(client, electionPath)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- selector.Run(t.Context(), f) }()
		return client, ended
	}
	first, wakes, again := make(chan error), make(chan bool), make(chan bool)
	refused := make(chan error, 1)
	terms := 0
	paused, _ := lead(func(_ context.Context, term *recipes.Hold) error {
		if terms++; terms == 2 {
			close(again)
			return context.Canceled // ends Run
		}
		first <- step(t.Context(), db, "paused", term.FencingToken())
		<-wakes
		err := step(t.Context(), db, "paused", term.FencingToken())
		refused <- err
		return err
	})
	require.NoError(t, <-first)
	require.True(t, cluster.ExpireSession(paused.SessionID()))
	_, later := lead(func(ctx context.Context, term *recipes.Hold) error {
		if err := step(ctx, db, "later", term.FencingToken()); err != nil {
			return err
		}
		return context.Canceled // ends Run
	})
	require.ErrorIs(t, <-later, context.Canceled)
	close(wakes)
	require.ErrorIs(t, <-refused, errFenced)
	steps, leader := row(t, db)
	require.Equal(t, 2, steps)
	require.Equal(t, "later", leader)
	<-again // as the term was lost, the error did not end Run
}
