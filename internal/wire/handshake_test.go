package wire_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/wire"
)

// greeting is the answer to a handshake that grants so many milliseconds.
func greeting(granted int32, session int64, password string, more ...byte) []byte {
	return packet(int32(0), granted, session, password, more)
}

// An answer is read to its end and no further, if it has the length of one.
func TestTheLengthOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		says []byte
		err  error
	}{
		"of ZooKeeper":  {greeting(1, 2, strings.Repeat("p", 16), 0), nil},
		"shortest":      {greeting(1, 2, ""), nil},
		"too short":     {packet(make([]byte, 19)), wire.ErrNotZooKeeper},
		"longest":       {greeting(1, 2, "", make([]byte, 108)...), nil},
		"too long":      {greeting(1, 2, "", make([]byte, 109)...), wire.ErrNotZooKeeper},
		"HTTP":          {[]byte("HTTP/1.1 400 Bad\r\n\r\n"), wire.ErrNotZooKeeper},
		"nothing":       {nil, io.EOF},
		"half a length": {make([]byte, 2), io.ErrUnexpectedEOF},
		"half of it":    {greeting(1, 2, "")[:12], io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			from := bytes.NewReader(c.says)
			answer, err := wire.ReadAnswer(from)
			require.ErrorIs(t, err, c.err)
			if err == nil {
				require.Equal(t, wire.Answer(c.says), answer)
				from = bytes.NewReader(append(c.says, "and more"...))
				_, err = wire.ReadAnswer(from)
				require.NoError(t, err)
				require.Equal(t, len("and more"), from.Len())
			}
		})
	}
}

func TestWhatAnAnswerTells(t *testing.T) {
	for name, c := range map[string]struct {
		answer  wire.Answer
		session int64
		timeout time.Duration
		err     string
	}{
		"a session":       {greeting(4000, 7, "secret", 0), 7, 4 * time.Second, ""},
		"no flag":         {greeting(4000, 7, "secret"), 7, 4 * time.Second, ""},
		"least":           {greeting(1, 7, ""), 7, time.Millisecond, ""},
		"expired":         {greeting(0, 0, "", 0), 0, 0, ""},
		"no time":         {greeting(0, 7, ""), 0, 0, "session timeout of 0 ms"},
		"no leader":       {greeting(1, -1, ""), 0, 0, "version 0, session -1"},
		"another version": {packet(int32(1), int32(1), int64(7), ""), 0, 0, "version 1"},
		"no password": {
			packet(int32(0), int32(1), int64(7), int32(-1)), 0, 0,
			"of 20 bytes, has a password of -1 bytes",
		},
		"half a password": {
			packet(int32(0), int32(1), int64(7), int32(3), []byte("12")), 0, 0,
			"of 22 bytes, has a password of 3 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			session, timeout, err := c.answer.Session()
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
			require.Equal(t, c.session, session)
			require.Equal(t, c.timeout, timeout)
		})
	}
	answer := wire.Answer(greeting(4000, 7, "secret", 0))
	answer.Expire()
	require.Equal(t, wire.Answer(greeting(4000, 0, "secret", 0)), answer)
}

func TestAPasswordOfZerosIsNone(t *testing.T) {
	for password, has := range map[string]bool{
		"": false, "\x00\x00": false, "\x00\x01": true, "secret": true,
	} {
		answer := wire.Answer(greeting(1, 2, password, 1))
		require.Equal(t, has, answer.HasPassword(), "%q", password)
	}
}

func TestWhatAHandshakeAsksFor(t *testing.T) {
	requireAsked := func(session, zxid int64, handshake []byte, why string) {
		t.Helper()
		gotSession, gotZxid := wire.Asked(handshake)
		require.Equal(t, session, gotSession, why)
		require.Equal(t, zxid, gotZxid, why)
	}
	whole := packet(int32(0), int64(99), int32(4000), int64(7), strings.Repeat("p", 16))
	requireAsked(7, 99, whole, "all of one")
	requireAsked(0, 0, whole[:40], "a part of one")
	requireAsked(0, 0, append(whole, 0), "more than one")
	least := packet(int32(0), int64(99), int32(4000), int64(7))
	requireAsked(7, 99, least, "the least")
	requireAsked(0, 0, packet([]byte("ruok")), "another word")
	requireAsked(0, 0, nil, "nothing")
}
