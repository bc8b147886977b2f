package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/simulator"
)

// parseHistory reads a history that is written by hand, an event in each line: the time
// in milliseconds, the kind, and but for a session the ID as "worker/owner/step" or
// "worker/owner/step/part", or the worker alone. Then come, in any order, a path (default
// "/p"), a mode, "under", "guarded", an outcome with hyphens for blanks, and token=,
// node=, session=, margin=, version= or bound=.
func parseHistory(tb testing.TB, text string) simulator.History {
	tb.Helper()
	var h simulator.History
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		ms, err := strconv.Atoi(fields[0])
		require.NoError(tb, err, line)
		e := simulator.Event{
			At: time.Duration(ms) * time.Millisecond, Kind: simulator.Kind(fields[1]),
			Path: "/p",
		}
		switch e.Kind {
		case simulator.Paused, simulator.Resumed, simulator.Expired, simulator.Closing,
			simulator.Removing, simulator.Removed, simulator.Cut, simulator.Mended:
			e.Path = ""
		}
		for _, field := range fields[2:] {
			parseField(tb, &e, field)
		}
		h = append(h, e)
	}
	return h
}

func parseField(tb testing.TB, e *simulator.Event, field string) {
	tb.Helper()
	key, value, isPair := strings.Cut(field, "=")
	number, err := strconv.ParseInt(value, 10, 64)
	require.Equal(tb, isPair && key != "node", err == nil, field)
	switch {
	case key == "token":
		e.Token = number
	case key == "session":
		e.Session = number
	case key == "margin":
		e.Margin = time.Duration(number) * time.Millisecond
	case key == "version":
		e.Version = number
	case key == "node":
		e.Node = value
	case key == "bound":
		e.Bound = time.Duration(number) * time.Millisecond
	case field == "guarded":
		e.Guarded = true
	case field == "under":
		e.Under = true
	case field == "cached":
		e.Cached = true
	case field == "exclusive" || field == "shared" || field == "leased":
		e.Mode = simulator.Mode(field)
	case field[0] == '/':
		e.Path = field
	case field[0] >= '0' && field[0] <= '9':
		ids := [4]*int{&e.Worker, &e.Owner, &e.Step, &e.Part}
		for i, digits := range strings.Split(field, "/") {
			*ids[i], err = strconv.Atoi(digits)
			require.NoError(tb, err, field)
		}
	default:
		e.Outcome = simulator.Outcome(strings.ReplaceAll(field, "-", " "))
	}
}

// kindsOf is the course of a history, for comparisons.
func kindsOf(h simulator.History) (kinds []string) {
	for _, e := range h {
		kinds = append(kinds, fmt.Sprintf("%s %d", e.Kind, e.Worker))
	}
	return kinds
}

// A losableHold is lost when it is closed.
type losableHold chan struct{}

func (l losableHold) Lost() <-chan struct{} { return l }
func (losableHold) Err() error              { return nil }

// A loss that was told before somebody else's grant must stand before it, also if the
// goroutine that waits for it has not run.
func TestRecorderNotesALossBeforeTheGrantThatFollowsIt(t *testing.T) {
	r := simulator.NewRecorder(nil)
	lost := make(losableHold)
	r.Grant(simulator.Event{ID: simulator.ID{Worker: 1}, Path: "/p"}, lost)
	close(lost)
	r.Grant(simulator.Event{ID: simulator.ID{Worker: 2}, Path: "/p"}, make(losableHold))
	r.Close()
	require.Equal(t, []string{"granted 1", "lost 1", "granted 2"}, kindsOf(r.History()))
}

// A closedHold is lost since its client was closed.
type closedHold struct{ losableHold }

func (closedHold) Err() error { return fmt.Errorf("lost: %w", zk.ErrConnectionClosed) }

func TestRecorderTellsWhatACloseHasEnded(t *testing.T) {
	r := simulator.NewRecorder(nil)
	over := make(losableHold)
	close(over)
	r.Grant(simulator.Event{ID: simulator.ID{Worker: 1}}, over)
	r.Grant(simulator.Event{ID: simulator.ID{Worker: 2}}, closedHold{over})
	r.Record(simulator.Event{Kind: simulator.Note}) // what is lost by then stands before it
	r.Close()
	outcomes := map[int]simulator.Outcome{}
	for _, e := range r.History() {
		if e.Kind == simulator.Lost {
			outcomes[e.Worker] = e.Outcome
		}
	}
	require.Equal(t, map[int]simulator.Outcome{1: "", 2: simulator.Closed}, outcomes)
}

func TestRecorderNotesALossOnceAndNoneAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := simulator.NewRecorder(nil)
		first, second := make(losableHold), make(losableHold)
		one, two := simulator.ID{Worker: 1}, simulator.ID{Worker: 2}
		r.Grant(simulator.Event{ID: one, Path: "/p"}, first)
		r.Grant(simulator.Event{ID: two, Path: "/q"}, second)
		time.Sleep(time.Second)
		close(first)
		synctest.Wait()
		r.Record(simulator.Event{Kind: simulator.Released, ID: two, Path: "/q"})
		close(second)
		synctest.Wait()
		r.Record(simulator.Event{Kind: simulator.Released, ID: one, Path: "/p"})
		r.Close()
		h := r.History()
		require.Equal(
			t, []string{"granted 1", "granted 2", "lost 1", "released 2", "released 1"},
			kindsOf(h),
		)
		require.Equal(t, time.Second, h[2].At)
	})
}

func TestHistoriesOfSeveralProcessesAreMergedByTime(t *testing.T) {
	a := parseHistory(t, `
		10 called 0/0/0 exclusive
		30 granted 0/0/0 token=7`)
	b := parseHistory(t, `
		20 called 1/0/0 exclusive
		40 failed 1/0/0 timed-out bound=50`)
	var line strings.Builder
	for _, e := range b {
		require.NoError(t, json.NewEncoder(&line).Encode(e))
	}
	var sent simulator.History
	for in := json.NewDecoder(strings.NewReader(line.String())); in.More(); {
		var e simulator.Event
		require.NoError(t, in.Decode(&e))
		sent = append(sent, e)
	}
	require.Equal(t, b, sent)
	require.Equal(
		t, []string{"called 0", "called 1", "granted 0", "failed 1"},
		kindsOf(simulator.Merge(a, sent)),
	)
}

// A judge has each event in order, and what the event begins waits for it.
func TestARecorderWaitsForTheJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told simulator.History
		world, err := simulator.New(simulator.Config{
			Session: time.Second,
			Dial: func(context.Context, int) (simulator.Client, error) {
				return nil, errors.New("nobody is there")
			},
			Tell: func(e simulator.Event) <-chan struct{} {
				told = append(told, e)
				taken := make(chan struct{})
				time.AfterFunc(time.Second, func() { close(taken) })
				return taken
			},
		})
		require.NoError(t, err)
		began := time.Now()
		record := world.Recorder.Record
		lost := make(losableHold)
		record(simulator.Event{Kind: simulator.Called})
		require.Equal(t, time.Second, time.Since(began))
		world.Recorder.Grant(simulator.Event{}, lost)
		close(lost)
		record(simulator.Event{Kind: simulator.Released})
		require.Equal(t, time.Second, time.Since(began), "that is over, and waits for none")
		record(simulator.Event{Kind: simulator.Releasing})
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, world.History(), told)
		var kinds []simulator.Kind
		for _, e := range told {
			kinds = append(kinds, e.Kind)
		}
		require.Equal(t, []simulator.Kind{
			simulator.Called, simulator.Granted, simulator.Lost, simulator.Released,
			simulator.Releasing,
		}, kinds)
		world.Recorder.Close()
	})
}
