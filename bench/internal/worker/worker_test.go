package worker_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/worker"
)

// some is a load of the shape, small.
func some(shape load.Shape) load.Load {
	return load.Load{
		Shape: shape, Kind: load.Mutex, Path: "/a", Sessions: 2, Users: 4, Paths: 1,
		Patience: time.Second, Settle: time.Millisecond, WarmUp: time.Second,
		Time: 10 * time.Second,
	}
}

func do(t *testing.T, m *memory, l load.Load) load.Result {
	t.Helper()
	r := worker.Do(t.Context(), m.peer(), l)
	require.Zero(t, m.sessions.Load(), "a session was left open")
	return r
}

func TestTriesAreAsLongAsTheirPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := some(load.Tries)
		l.Patience = 3 * time.Second
		r := do(t, newMemory(), l)
		require.Empty(t, r.Fault)
		require.EqualValues(t, 8*4, r.Ops, "8 users; the last try begins after 9 s of 10")
		require.Equal(t, l.Patience, *r.Median)
	})
}

func TestADrainLetsEverybodyThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := do(t, m, some(load.Drain))
		require.Empty(t, r.Fault)
		require.EqualValues(t, 4, r.Ops)
		require.Zero(t, m.locks["/a"].users.Load())
	})
}

func TestAHandOverLeavesNobodyBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r := do(t, m, some(load.HandOver))
		require.Empty(t, r.Fault)
		require.Positive(t, r.Ops)
		require.Zero(t, *r.Median, "in a bubble no time passes in between")
		require.Zero(t, m.locks["/a"].users.Load())
	})
}

// A cycle takes no virtual time, so it is done in real time, and shortly.
func TestACycleSpreadsItsUsersOverThePaths(t *testing.T) {
	m, l := newMemory(), some(load.Cycle)
	l.Paths, l.WarmUp, l.Time = 3, time.Millisecond, 100*time.Millisecond
	r := do(t, m, l)
	require.Empty(t, r.Fault)
	require.Positive(t, r.Ops)
	require.GreaterOrEqual(t, r.Took, l.Time)
	require.Len(t, m.locks, 3)
	for _, lock := range m.locks {
		require.Zero(t, lock.users.Load())
	}
}

func TestWaitersAreDismissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := do(t, newMemory(), some(load.Waiting))
		require.Empty(t, r.Fault)
		require.EqualValues(t, 4, r.Ops)
		require.Zero(t, *r.Threads, "but for those in which they wait there are none")
	})
}

func TestTheUpkeepIsForEachSessionAndSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := some(load.Idle)
		l.Sessions, l.Users = 3, 1
		r := do(t, newMemory(), l)
		require.Empty(t, r.Fault)
		require.EqualValues(t, 3*10, r.Ops)
		require.Equal(t, l.Time, r.Took)
	})
}

func TestHoldersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := some(load.Holding)
		l.Paths = l.Users
		r := do(t, newMemory(), l)
		require.Empty(t, r.Fault)
		require.EqualValues(t, 4, r.Ops)
	})
}

func TestWhatThePeerCannotDo(t *testing.T) {
	l := some(load.Cycle)
	l.Kind = load.Semaphore
	r := do(t, newMemory(), l)
	require.True(t, r.Unsupported)
	require.Empty(t, r.Fault)
}

func TestAFaultEndsTheLoad(t *testing.T) {
	for shape, patience := range map[load.Shape]time.Duration{
		load.Cycle: 0, load.HandOver: 0, load.Drain: 0, load.Tries: 1, "new": 0,
	} {
		t.Run(string(shape), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, l := newMemory(), some(shape)
				m.fault, l.Patience = errors.New("no more locks"), patience
				require.NotEmpty(t, do(t, m, l).Fault)
			})
		})
	}
}

func TestServeAnswersLineByLine(t *testing.T) {
	l := some(load.Drain)
	l.Settle = time.Microsecond
	line, err := json.Marshal(l)
	require.NoError(t, err)
	in := strings.NewReader(string(line) + "\n" + string(line) + "\n")
	var out bytes.Buffer
	require.NoError(t, worker.Serve(t.Context(), newMemory().peer(), in, &out))
	answers := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, answers, 2)
	for _, a := range answers {
		var r load.Result
		require.NoError(t, json.Unmarshal([]byte(a), &r))
		require.EqualValues(t, 4, r.Ops)
	}
}

// The Java program has the fields of the loads, and no others in its results.
func TestJavaSpeaksTheSame(t *testing.T) {
	fields := func(file string) (names []string) {
		text, err := os.ReadFile("../../java/" + file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(
			`(?m)^    public [\w<>]+ (\w+);`,
		).FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return names
	}
	tags := func(of any) (names []string) {
		for i := range reflect.TypeOf(of).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(of).Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
		return names
	}
	require.Equal(t, tags(load.Load{}), fields("Load.java"))
	require.Subset(t, tags(load.Result{}), fields("Result.java"))
}

// On a machine that is busy with something else, the time alone may hold no operation.
func TestACycleLastsUntilEnoughIsDone(t *testing.T) {
	l := some(load.Cycle)
	l.WarmUp, l.Time, l.Least = time.Nanosecond, time.Nanosecond, 10_000
	r := do(t, newMemory(), l)
	require.Empty(t, r.Fault)
	require.GreaterOrEqual(t, r.Ops, l.Least)
}
