package prove

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
)

func openDoor(t *testing.T, machines int) *Door {
	t.Helper()
	door, err := OpenDoor("127.0.0.1:0", machines)
	require.NoError(t, err)
	t.Cleanup(func() { _ = door.Close() })
	return door
}

// Three machines prove together: each has workers of its own, and all are judged by one.
func TestThreeMachinesProveTogether(t *testing.T) {
	t.Parallel()
	servers, client := serve(t)
	c := configFor(t, servers)
	c.Door = openDoor(t, 3)
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() {
			ended <- Join(t.Context(), c.Door.Address(), c.Door.Token(), hostOf(servers))
		}()
	}
	report := prove(t, c)
	requireProven(t, report)
	require.Equal(t, 3, report.Hosts)
	require.Equal(t, 6, report.Workers)
	machines := map[int]bool{}
	for _, e := range report.shown.history {
		if e.Kind == simulator.Granted {
			machines[e.Worker/workersApart] = true
		}
	}
	require.Len(t, machines, 3)
	for range cap(ended) {
		require.NoError(t, <-ended)
	}
	children, _, err := client.Children("/")
	require.NoError(t, err)
	require.Equal(t, []string{"zookeeper"}, children)
}

// A machine that goes ends no run in silence, and its workers end with the judge.
func TestAMachineThatGoes(t *testing.T) {
	t.Parallel()
	servers, client := serve(t)
	c := configFor(t, servers)
	c.For, c.Door = time.Hour, openDoor(t, 2)
	going, leave := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Join(going, c.Door.Address(), c.Door.Token(), hostOf(servers))
	}()
	go func() {
		awaitWork(t, client, c)
		leave(errors.New("it was switched off"))
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := c.Run(ctx)
	require.NoError(t, err)
	t.Log("\n" + report.Text())
	require.Equal(t, Undecided, report.Verdict)
	require.ErrorContains(t, <-ended, "it was switched off")
}

// Both must be of the same ensemble.
func TestAMachineOfAnotherEnsemble(t *testing.T) {
	t.Parallel()
	servers, _ := serve(t)
	others, _ := serve(t)
	c := configFor(t, servers)
	c.Door = openDoor(t, 2)
	go func() {
		_ = Join(t.Context(), c.Door.Address(), c.Door.Token(), hostOf(others))
	}()
	report := prove(t, c)
	require.Equal(t, Undecided, report.Verdict)
	require.Contains(t, report.Text(), "another ensemble")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	door := openDoor(t, 2)
	parsed, err := parseToken(door.Token())
	require.NoError(t, err)
	require.Equal(t, door.token, parsed)
	for _, text := range []string{"", "x", door.Token() + "AAAA", door.Token()[1:], "ä"} {
		_, err := parseToken(text)
		require.ErrorIs(t, err, errNoToken)
		require.NotContains(t, err.Error(), door.Token()[5:])
	}
}

// Who has not the token's key gets no secret.
func TestAServerWithAnotherKey(t *testing.T) {
	t.Parallel()
	door, other := openDoor(t, 2), openDoor(t, 2)
	heard := make(chan []byte, 1)
	go func() {
		conn, err := other.listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		said, _ := io.ReadAll(conn) // what comes of it is the question
		heard <- said
	}()
	err := Join(t.Context(), other.Address(), door.Token(), Host{})
	require.ErrorIs(t, err, errNotTheKey)
	require.Empty(t, <-heard)
}

// Who has not the secret is not admitted, whatever it says; nor one that says too much.
func TestSomebodyWithoutTheSecret(t *testing.T) {
	t.Parallel()
	door := openDoor(t, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	admitted := make(chan error, 1)
	go func() {
		_, err := door.admit(ctx, t.Logf)
		admitted <- err
	}()
	wrong := door.token
	wrong.secret[0]++
	require.ErrorIs(t, Join(t.Context(), door.Address(), wrong.String(), Host{}), errGone)
	for _, text := range []string{
		"\n", "{}\n", `{"hello":{"format":1}}` + "\n", strings.Repeat("x", 2*lineMost),
		`{"hello":{"format":1,"secret":"AAAA"}}` + "\n", "GET / HTTP/1.1\r\n\r\n",
	} {
		conn, err := tls.Dial("tcp", door.Address(), &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // it is nobody's business here
			MinVersion:         tls.VersionTLS13,
		})
		require.NoError(t, err)
		_, _ = io.WriteString(conn, text) // else it has hung up already
		_, err = io.ReadAll(conn)
		if err != nil {
			require.NotErrorIs(t, err, io.EOF)
		}
		_ = conn.Close() // which says that the other side has hung up
	}
	plain, err := net.Dial("tcp", door.Address())
	require.NoError(t, err)
	require.NoError(t, plain.Close())
	cancel(errors.New("nobody has joined"))
	require.ErrorContains(t, <-admitted, "nobody has joined")
}

// A judge that has gone without a word is not waited for, by nobody.
func TestAJudgeThatFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		h := Host{Access: Access{Connect: func(
			ctx context.Context, _ time.Duration, _ ...recipes.ClientOption,
		) (*recipes.Client, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}}
		ended := make(chan error, 1)
		go func() { ended <- h.visit(t.Context(), theirs, token{}) }()
		in, out := newLineReader(ours), newLineWriter(ours)
		var m fromGuest
		require.NoError(t, in.next(&m))
		time.Sleep(time.Hour) // until all have joined
		require.NoError(t, out.write(toGuest{Ping: 1}))
		require.NoError(t, in.next(&m))
		require.Equal(t, time.Hour, m.Clock)
		require.NoError(t, out.write(toGuest{Order: &guestOrder{
			roundOrder: roundOrder{
				Workers: 1, Session: time.Second, Length: time.Hour, Rate: 1,
				Root: "/r/0",
			}, RunRoot: "/r",
		}}))
		began := time.Now()
		require.ErrorIs(t, <-ended, errGone)
		require.Equal(t, goneAfter, time.Since(began))
	})
}

// A machine that does not listen does not hold up the run.
func TestAMachineThatDoesNotListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		o := roundOrder{First: workersApart, Root: "/r/0"}
		ended := make(chan error, 1)
		go func() {
			_, err := newGuest(ours).run(t.Context(), o, newJudge(0, nil))
			ended <- err
		}()
		require.NoError(t, newLineReader(theirs).next(&toGuest{}))
		began := time.Now()
		require.NoError(t, newLineWriter(theirs).write(fromGuest{
			Number: 1, Event: &simulator.Event{
				Kind: simulator.Called, ID: simulator.ID{Worker: workersApart},
			},
		}))
		require.ErrorAs(t, <-ended, new(*guestGone))
		require.LessOrEqual(t, time.Since(began), 2*goneAfter) // a ping waited, too
	})
}

// A machine's clock is compared with the judge's by the pings.
func TestAMachineWhoseClockIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		o := roundOrder{First: workersApart, Root: "/r/0", Session: 3 * time.Second}
		j := newJudge(0, nil)
		ended := make(chan error, 1)
		go func() {
			_, err := newGuest(ours).run(t.Context(), o, j)
			ended <- err
		}()
		in, out := newLineReader(theirs), newLineWriter(theirs)
		for began := time.Now(); time.Since(began) < 10*time.Second; {
			var m toGuest
			require.NoError(t, in.next(&m))
			if m.Ping > 0 {
				slow := time.Since(began) * 9 / 10
				require.NoError(t, out.write(fromGuest{Pong: m.Ping, Clock: slow}))
			}
		}
		require.NoError(t, theirs.Close())
		require.ErrorAs(t, <-ended, new(*guestGone))
		h := j.close()
		require.Len(t, h, 1)
		require.Equal(t, clockOff, h[0].Kind)
		require.Equal(t, "worker 1000: the clock of its machine ran 2.7s in a time of "+
			"3s to 3s: the locks assume clocks that run at the same rate within 5 %",
			h[0].Text)
	})
}

// A machine may tell of its own workers, and of what is below the round's root.
func TestWhatAMachineMayTell(t *testing.T) {
	t.Parallel()
	o := roundOrder{First: workersApart, Root: "/r/0"}
	for _, test := range []struct {
		worker int
		path   string
		may    bool
	}{
		{workersApart, "/r/0/mutex-1", true},
		{2*workersApart - 1, "", true},
		{workersApart - 1, "/r/0/mutex-1", false},
		{2 * workersApart, "/r/0/mutex-1", false},
		{workersApart, "/r/1/mutex-1", false},
		{workersApart, "/r/0", false},
	} {
		e := simulator.Event{
			Kind: simulator.Granted, Path: test.path,
			ID: simulator.ID{Worker: test.worker},
		}
		require.Equal(t, test.may, o.mayTell(e), "%+v", test)
	}
}

// What goes to another machine has no credentials in it: an order says what is to be
// done, and nothing of how to connect.
func TestAnOrderHasNoCredentials(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(toGuest{Order: &guestOrder{}})
	require.NoError(t, err)
	var fields map[string]map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	for name := range fields["order"] {
		require.Contains(t, []string{
			"seed", "first", "workers", "session", "root", "calm", "rate", "length",
			"runRoot", "czxid",
		}, name)
	}
}
