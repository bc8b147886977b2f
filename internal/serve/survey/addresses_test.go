package survey_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/serve/survey"
)

// located has a survey ask servers that answer with a text: "" hangs.
func located(answers map[string]string, silent func(string, error)) *survey.Addresses {
	a := &survey.Addresses{Silent: silent}
	for server := range answers {
		a.Servers = append(a.Servers, server)
	}
	a.Dial = func(_ context.Context, server string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			word := make([]byte, 4)
			_, _ = io.ReadFull(theirs, word) // else the survey has hung up
			if answer := answers[server]; string(word) == "cons" && answer != "" {
				_, _ = io.WriteString(theirs, answer) // likewise
				return
			}
			_, _ = theirs.Read(word)
		}()
		return ours, nil
	}
	return a
}

// Each session has the address that its server tells.
func TestAddresses(t *testing.T) {
	c := config()
	inScene(t, c, func(s *scene) {
		s.config.Addresses = &survey.Addresses{
			Servers: s.cluster.Names(),
			Dial: func(_ context.Context, server string) (net.Conn, error) {
				return s.cluster.Link("asks").Dial("tcp", server, time.Second)
			},
		}
		require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
		s.mustCreate("/groups", 0)
		s.mustCreate("/groups/one", zk.FlagEphemeral)
	}, func(s *scene) {
		state := s.survey.State()
		at := state.Locks[0].Queue[0].Address
		require.Regexp(s, `^127.0.0.1:\d+$`, at)
		require.Equal(s, at, state.Registrations[0].Address)
		l, _, _ := s.survey.Detail("/lock")
		require.Equal(s, at, l.Queue[0].Address)
		time.Sleep(7 * time.Second) // before the next round
		s.cluster.Link("client").Cut()
		time.Sleep(3 * time.Second)
		require.Empty(s, s.lock("/lock").Queue[0].Address, "it is not connected")
		s.cluster.Link("client").Heal()
	})
}

// What servers say of one session, 0x1, and what is known by it.
func TestWhatServersTell(t *testing.T) {
	const rest = ",lop=PING,est=1764205200000,to=10000,lcxid=0x1,lzxid=0x2,lresp=3," +
		"llat=0,minlat=0,avglat=0,maxlat=1)\n"
	for line, want := range map[string]string{
		" /10.1.2.3:45678[1](queued=0,recved=3,sent=3,sid=%s":        "10.1.2.3:45678",
		" /0:0:0:0:0:0:0:1:45678[1](queued=0,recved=3,sent=3,sid=%s": "[::1]:45678",
		" /[fe80::1]:45678[1](queued=0,recved=3,sent=3,sid=%s":       "[fe80::1]:45678",
		" host/10.1.2.3:45678[1](queued=0,recved=3,sent=3,sid=%s":    "10.1.2.3:45678",
		" /fe80::1%%<b>:45678[1](queued=0,recved=3,sent=3,sid=%s":    "[fe80::1]:45678",
		" /<script>:1[1](queued=0,recved=3,sent=3,sid=%s":            "",
		" /10.1.2.3:456789[1](queued=0,recved=3,sent=3,sid=%s":       "",
		" /:1[1](queued=0,recved=3,sent=3,sid=%s":                    "",
		" /1[1](queued=0,recved=3,sent=3,sid=%s":                     "",
		" /10.1.2.3:1[1](queued=0,recved=3,sent=3,sid=%sffffffffff":  "",
	} {
		inScene(t, config(), func(s *scene) {
			session := fmt.Sprintf("0x%x", uint64(s.client.SessionID()))
			answer := fmt.Sprintf(line, session) + rest +
				" /127.0.0.1:9[0](queued=0,recved=1,sent=0)\n\n"
			s.config.Addresses = located(map[string]string{"zk": answer},
				func(_ string, err error) { require.NoError(s, err) })
			require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
		}, func(s *scene) {
			require.Equal(s, want, s.lock("/lock").Queue[0].Address, line)
		})
	}
}

// Of servers that do not tell it is said once, and all else is known.
func TestServersThatDoNotTell(t *testing.T) {
	told := map[string]string{}
	inScene(t, config(), func(s *scene) {
		long := " /10.1.2.3:1[1](" + strings.Repeat("x", 1<<20)
		s.config.Addresses = located(map[string]string{
			"forbidden": "cons is not executed because it is not in the whitelist.\n",
			"hostile":   "\x1b[31m\u202e<b>" + strings.Repeat("x", 1000) + "\n",
			"hangs":     "", "long": long,
			"tells": fmt.Sprintf(" /10.1.2.3:1[1](queued=0,sid=0x%x,lop=NA)\n",
				s.client.SessionID()),
		}, func(server string, err error) {
			require.Empty(s, told[server])
			told[server] = err.Error()
		})
		require.NoError(s, s.mutex("/lock", "x").Acquire(s.Context()))
	}, func(s *scene) {
		time.Sleep(10 * time.Minute)
		require.Equal(s, "10.1.2.3:1", s.lock("/lock").Queue[0].Address)
		require.Equal(s, `the answer to cons is "cons is not executed because it is not `+
			`in the whitelist."`, told["forbidden"])
		require.NotContains(s, told["hostile"], "\u202e")
		require.Less(s, len(told["hostile"]), 200)
		require.Contains(s, told, "hangs")
		require.Contains(s, told, "long")
		require.Len(s, told, 4)
		require.Zero(s, s.survey.State().Outdated)
	})
}
