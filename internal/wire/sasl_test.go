package wire_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/wire"
)

const opSASL = int32(102)

// askSASL sends a message to a server that says this, with the xid 1.
func askSASL(token string, says []byte) (sent, answer []byte, err error) {
	var w bytes.Buffer
	_, stream := hear(says)
	answer, err = stream.AskSASL(&w, 1, []byte(token))
	return w.Bytes(), answer, err
}

func TestAMessageOfSASLAndItsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		body   []any
		answer []byte
	}{
		"a challenge": {[]any{"challenge"}, []byte("challenge")},
		"empty":       {[]any{""}, []byte{}},
		"null":        {[]any{negative}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, token := range []string{"", "token"} {
				sent, answer, err := askSASL(token, reply(1, c.body...))
				require.NoError(t, err)
				require.Equal(t, packet(int32(1), opSASL, token), sent)
				require.Equal(t, c.answer, answer)
			}
		})
	}
}

func TestAnswersToSASLThatAreNone(t *testing.T) {
	refused := func(code int32) []byte { return packet(int32(1), int64(5), code) }
	for name, c := range map[string]struct {
		token     string
		says      []byte
		err       string
		permanent bool // the server has refused
	}{
		"the mechanism":   {"", refused(-115), "rejects the mechanism", true},
		"the credentials": {"token", refused(-115), "the credentials are wrong", true},
		"authentication":  {"token", refused(-124), "the credentials are wrong", true},
		"nothing of it":   {"", refused(-124), "the credentials are wrong", true},
		"another error":   {"token", refused(-6), "with error code -6", true},
		"another's":       {"token", reply(2, "no"), "request 2 instead of 1", false},
		"part of a head": {
			"token", refused(0)[:19], "unexpected EOF", false,
		},
		"a short head": {
			"token", append([]byte{0, 0, 0, 15}, refused(0)[4:]...),
			"has 15 bytes", false,
		},
		"no body":    {"token", refused(0), "token: 4 bytes where there are 0", false},
		"too long":   {"token", reply(1, make([]byte, 128<<10-15)), "has 131073", false},
		"cut":        {"token", reply(1, "answer")[:26], "unexpected EOF", false},
		"hung up":    {"token", nil, "EOF", false},
		"negative":   {"token", reply(1, int32(-2)), "length -2 in 0 bytes", false},
		"null, more": {"token", reply(1, negative, "a"), "length -1 in 5 bytes", false},
		"more":       {"token", reply(1, "a", "b"), "length 1 in 6 bytes", false},
		"less": {
			"token", reply(1, int32(3), []byte("ab")), "length 3 in 2 bytes", false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, answer, err := askSASL(c.token, c.says)
			require.ErrorContains(t, err, c.err)
			require.Equal(t, c.permanent, errors.Is(err, zk.ErrAuthFailed))
			require.Nil(t, answer)
		})
	}
}

// The limit is that of any reply, if that is less than the one of SASL.
func TestTheLimitOfAnswersToSASL(t *testing.T) {
	for size, passes := range map[int]bool{4096: true, 4097: false} {
		says := reply(1, string(make([]byte, size-20)))
		stream := wire.NewStream(bytes.NewReader(says), 4096, new(heard))
		answer, err := stream.AskSASL(io.Discard, 1, nil)
		if passes {
			require.NoError(t, err)
			require.Len(t, answer, size-20)
		} else {
			require.ErrorContains(t, err, "4097 bytes: must be from 16 to 4096")
		}
	}
}

func TestAMessageOfSASLThatCannotBeSent(t *testing.T) {
	read, w := io.Pipe()
	require.NoError(t, read.Close())
	_, stream := hear(reply(1, "answer"))
	_, err := stream.AskSASL(w, 1, nil)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}
