package kerberos

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/kdc"
)

// A hostileKDC answers every request on TCP with the same text, then holds the
// connection. Asked is closed with the first request.
func hostileKDC(t *testing.T, answer []byte) (config string, asked chan struct{}) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	asked = make(chan struct{})
	go func() {
		for first := true; ; first = false {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			var length [4]byte
			if _, err := io.ReadFull(conn, length[:]); err != nil {
				continue
			}
			_, _ = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(length[:])))
			if first {
				close(asked)
			}
			_, _ = conn.Write(answer)
		}
	}()
	return write(t, "krb5.conf", fmt.Sprintf("[libdefaults]\n default_realm = %s\n"+
		" dns_lookup_kdc = false\n udp_preference_limit = 1\n[realms]\n %[1]s = {\n"+
		"  kdc = %s\n }\n", kdc.Realm, listener.Addr())), asked
}

func keytabLogin(t *testing.T, config string) *login {
	t.Helper()
	keytab := write(t, "keytab", string(testKeytab(t)))
	s, err := FromKeytab("bob", keytab, WithConfigFile(config))
	require.NoError(t, err)
	return s.(*login)
}

// Nothing is allocated on the word of one who has not proven itself: four bytes cost a
// process 4 GiB.
func TestAReplyThatAnnouncesTooMuch(t *testing.T) {
	for _, length := range []uint32{1<<20 + 1, 1 << 30, 1<<32 - 1} {
		config, _ := hostileKDC(t, binary.BigEndian.AppendUint32(nil, length))
		s := keytabLogin(t, config)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := s.ticket(t.Context(), "localhost")
		runtime.ReadMemStats(&after)
		require.ErrorContains(t, err, fmt.Sprintf("announces %d bytes", length))
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
	}
}

// A KDC that does not answer, or not to the end, is waited for no longer than ctx lasts.
func TestACancelledExchangeWithAKDC(t *testing.T) {
	for name, answer := range map[string][]byte{
		"silent": nil, "half": {0, 0, 1, 0, 0x7e}, "half a length": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			config, asked := hostileKDC(t, answer)
			s := keytabLogin(t, config)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			_, err := s.ticket(ctx, "localhost")
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}
