package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// The page has what is printed of a leader that goes on after its session was ended.
func TestADeafLeaderIsRejected(t *testing.T) {
	cluster := zktest.Start(t)
	t.Setenv("ZOOKEEPER_SERVERS", cluster.ConnectString())
	client, err := recipes.Connect(t.Context(), cluster.ConnectString(), sessionTimeout)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	former := os.Stdout
	os.Stdout, deaf = write, true
	t.Cleanup(func() { os.Stdout, deaf = former, false })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, filepath.Join(t.TempDir(), "leader.db"))
		ended <- errors.Join(err, write.Close())
	}()
	var printed []string
	number := regexp.MustCompile(`\d+`)
	for lines := bufio.NewScanner(read); lines.Scan(); {
		printed = append(printed, number.ReplaceAllString(lines.Text(), "N"))
		if strings.HasPrefix(lines.Text(), "step of ") {
			cancel()
			continue
		}
		queue, err := recipes.Inspect(t.Context(), client, electionPath)
		require.NoError(t, err)
		if len(queue) > 0 {
			cluster.ExpireSession(queue[0].Session) // else it has just gone
		}
	}
	require.NoError(t, <-ended)
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, block, _ := strings.Cut(string(page), "-deaf\n")
	block, _, ok := strings.Cut(block, "```")
	require.True(t, ok)
	for line := range strings.Lines(number.ReplaceAllString(block, "N")) {
		require.Contains(t, printed, strings.TrimSpace(line))
	}
}
