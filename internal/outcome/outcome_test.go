package outcome_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/outcome"
)

func TestErrorsAreTold(t *testing.T) {
	t.Parallel()
	type class struct{ answered, final, notDone bool }
	var (
		done     = class{answered: true}
		refusal  = class{answered: true, final: true, notDone: true}
		unknown  = class{}
		passing  = class{answered: true, notDone: true}
		between  = class{answered: true} // servers lost one another: it may be done
		byClient = class{final: true, notDone: true}
	)
	for name, c := range map[string]struct {
		err  error
		want class
	}{
		"nil":           {nil, done},
		"no node":       {zk.ErrNoNode, refusal},
		"wrapped":       {fmt.Errorf("traced: %w", zk.ErrNoAuth), refusal},
		"no children":   {zk.ErrNoChildrenForEphemerals, refusal},
		"unimplemented": {errors.New("unknown error: -6"), refusal},
		"quota":         {errors.New("unknown error: -125"), refusal},
		"local session": {errors.New("unknown error: -120"), refusal},
		"with its meaning": {
			fmt.Errorf(
				"create: %w", outcome.WithMeaning(errors.New("unknown error: -127"))),
			passing,
		},
		"read-only server":  {errors.New("unknown error: -119"), passing},
		"throttled":         {errors.New("unknown error: -127"), passing},
		"connection loss":   {errors.New("unknown error: -4"), between},
		"operation timeout": {errors.New("unknown error: -7"), between},
		"connection closed": {zk.ErrConnectionClosed, unknown},
		"session expired":   {zk.ErrSessionExpired, unknown},
		"raw":               {errors.New("write tcp: broken pipe"), unknown},
		"no server":         {zk.ErrNoServer, class{notDone: true}},
		"session moved":     {zk.ErrSessionMoved, class{notDone: true}},
		"invalid path":      {zk.ErrInvalidPath, byClient},
		"closed by owner":   {fmt.Errorf("x: %w", outcome.ErrClosed), class{final: true}},
		"reply too long": {
			outcome.Named(errors.New("unknown error: -4097")),
			class{answered: true, final: true}, // it may be done
		},
		"broken": { // it may be done, or not
			outcome.Broken{Err: io.EOF}, class{final: true},
		},
		"made final": {outcome.Permanent(io.EOF), class{final: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := class{
				outcome.Answered(c.err), outcome.Final(c.err), outcome.NotDone(c.err),
			}
			if c.err == nil {
				got.notDone = outcome.NotDone(nil)
			}
			require.Equal(t, c.want, got)
		})
	}
	require.True(t, outcome.Unimplemented(errors.New("unknown error: -6")))
	require.False(t, outcome.Unimplemented(errors.New("unknown error: -4")))
	require.False(t, outcome.Unimplemented(nil))
}

func TestWhatTheLeaderHasJudged(t *testing.T) {
	t.Parallel()
	require.True(t, outcome.Judged(nil))
	require.True(t, outcome.Judged(fmt.Errorf("traced: %w", zk.ErrNodeExists)))
	require.False(t, outcome.Judged(zk.ErrNoAuth), "a follower judges that by itself")
	require.False(t, outcome.Judged(zk.ErrConnectionClosed))
}

func TestWhatLosesAConnection(t *testing.T) {
	t.Parallel()
	require.True(t, outcome.ConnectionLost(zk.ErrConnectionClosed))
	require.False(t, outcome.ConnectionLost(nil))
	require.False(t, outcome.ConnectionLost(zk.ErrNoNode), "an answer")
	require.False(t, outcome.ConnectionLost(zk.ErrNoServer), "the request was not sent")
	require.False(t, outcome.ConnectionLost(outcome.Broken{Err: io.EOF}), "it is a bug")
}

func TestACauseIsToldOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t, io.EOF, outcome.WithCause(io.EOF), "no ctx has ended the wait")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(io.EOF)
	cancelled := outcome.Cancelled(ctx)
	require.NotErrorIs(t, cancelled, io.EOF)
	told := outcome.WithCause(cancelled)
	require.ErrorIs(t, told, io.EOF)
	require.Equal(t, told, outcome.WithCause(told))
}

// A cause that is an answer without a name was judged by its text, as if ZooKeeper had
// answered.
func TestACauseIsNoAnswer(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{zk.ErrNoNode, errors.New("unknown error: -125")} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		err := fmt.Errorf("wait: %w", outcome.Cancelled(ctx))
		require.False(t, outcome.Answered(err), "%v", cause)
		require.False(t, outcome.Final(err), "%v", cause)
	}
}

// The client has no name for some codes: whoever reads the error learns what to do.
func TestWhatACodeMeans(t *testing.T) {
	t.Parallel()
	for code, meaning := range map[int]string{
		-119: "read-only", -120: "localSessionsUpgradingEnabled", -124: "WithSASL",
		-125: "quota exceeded", -127: "throttled",
	} {
		err := fmt.Errorf("unknown error: %d", code)
		meant := outcome.WithMeaning(fmt.Errorf("create /a: %w", err))
		require.ErrorIs(t, meant, err)
		require.ErrorContains(t, meant, fmt.Sprintf("create /a: %v (", err))
		require.ErrorContains(t, meant, meaning)
	}
	require.NoError(t, outcome.WithMeaning(nil))
	unknown := errors.New("unknown error: -999")
	for _, same := range []error{zk.ErrNoNode, unknown, io.EOF} {
		require.Equal(t, same, outcome.WithMeaning(same))
	}
}

// The client has no name for what a reply becomes that was too long.
func TestNamed(t *testing.T) {
	require.NoError(t, outcome.Named(nil))
	for _, same := range []error{
		zk.ErrNoNode, errors.New("unknown error: -120"), errors.New("unknown error: -x"),
		errors.New("unknown error: 4097"),
	} {
		require.Equal(t, same, outcome.Named(same))
	}
	err := fmt.Errorf("list /a: %w", outcome.Named(errors.New("unknown error: -114000")))
	require.True(t, outcome.IsReplyTooLong(err))
	require.ErrorContains(t, err, "114000 bytes")
	require.ErrorContains(t, err, "WithMaxReply")
	require.True(t, outcome.Refused(err), "the list may get shorter")
	require.False(t, outcome.Judged(err))
}

// A refusal may pass, and ends no obligation.
func TestRefused(t *testing.T) {
	for _, refusal := range []error{
		zk.ErrNoAuth, zk.ErrNotEmpty, errors.New("unknown error: -125"),
		outcome.Broken{Err: io.EOF},
	} {
		require.True(t, outcome.Refused(fmt.Errorf("delete: %w", refusal)), refusal)
	}
	for _, other := range []error{
		nil, zk.ErrNoNode, zk.ErrConnectionClosed,
		outcome.ClosedError{},
		outcome.Permanent(outcome.ErrSessionEnded), errors.New("unknown error: -127"),
	} {
		require.False(t, outcome.Refused(other), other)
	}
}
