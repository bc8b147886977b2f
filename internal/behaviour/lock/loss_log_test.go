package lock_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// A lossRecord is what is logged of a loss.
type lossRecord struct {
	Level, Msg, Recipe, Path, Node, Error string
	Held                                  time.Duration
	Token                                 int64
}

const lossLogged = "zookeeper lock: the lock was lost"

// lossesIn are the losses in a log, in JSON.
func lossesIn(t *testing.T, log []byte) (all []lossRecord) {
	t.Helper()
	for line := range bytes.Lines(log) {
		var one lossRecord
		require.NoError(t, json.Unmarshal(line, &one))
		if one.Msg == lossLogged {
			all = append(all, one)
		}
	}
	return all
}

// requireLogged requires a record for each loss that the observer received, at least one.
func requireLogged(t *testing.T, events []recipes.Event, logged []lossRecord) {
	t.Helper()
	tokens, losses := map[string]int64{}, map[string]recipes.Event{}
	for _, e := range events {
		switch e.Kind {
		case recipes.EventAcquired:
			tokens[e.Node] = e.Token
		case recipes.EventLost:
			losses[e.Node] = e
		}
	}
	require.NotEmpty(t, logged)
	require.Len(t, logged, len(losses))
	for _, one := range logged {
		lost, ok := losses[one.Node]
		require.True(t, ok, "%s", one.Node)
		delete(losses, one.Node)
		require.Equal(t, lossRecord{
			Level: "WARN", Msg: lossLogged, Recipe: lost.Recipe, Path: lost.Path,
			Node: lost.Node, Held: lost.Elapsed, Token: tokens[lost.Node],
			Error: lost.Err.Error(),
		}, one)
	}
}

// A normal release is no loss.
func TestAReleaseIsNotLogged(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		var log bytes.Buffer
		lock := b.Mutex(t, b.Ours, "/lock",
			recipes.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))
		require.NoError(t, lock.Acquire(t.Context()))
		require.NoError(t, lock.Release(t.Context()))
		b.Cluster.ExpireSession(b.Ours.SessionID())
		synctest.Wait()
		require.Empty(t, lossesIn(t, log.Bytes()))
	})
}
