package prove

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// A session that is ended by its own password is gone, and with it its ephemeral znodes;
// of another session the password is not known.
func TestASessionIsEndedByItsPassword(t *testing.T) {
	t.Parallel()
	servers, _ := serve(t)
	keys := &keyring{dial: net.DialTimeout}
	client, err := recipes.Connect(t.Context(), servers, 10*time.Second,
		recipes.WithDialer(keys.Dial))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	session := client.SessionID()
	require.ErrorIs(t, keys.expire(session+1), errNoKey)
	lock, err := recipes.NewInterProcessMutex(client, "/lock")
	require.NoError(t, err)
	hold, err := recipes.Acquire(t.Context(), lock)
	require.NoError(t, err)
	require.NoError(t, keys.expire(session))
	select {
	case <-hold.Lost():
		require.ErrorIs(t, hold.Err(), recipes.ErrSessionEnded)
	case <-time.After(time.Minute):
		t.Fatal("the hold lasts")
	}
	require.Eventually(t, func() bool {
		return client.SessionID() != session && client.SessionID() != 0
	}, time.Minute, 10*time.Millisecond)
}

// What TLS hides is no answer.
func TestNoPasswordIsLearnedThroughTLS(t *testing.T) {
	t.Parallel()
	door := openDoor(t, 2)
	go func() {
		if conn, err := door.listener.Accept(); err == nil {
			_ = conn.(*tls.Conn).Handshake() // the client's question
			_ = conn.Close()
		}
	}()
	keys := &keyring{dial: net.DialTimeout}
	conn, err := keys.Dial("tcp", door.Address(), time.Minute)
	require.NoError(t, err)
	defer conn.Close()
	secure := tls.Client(conn, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // it is nobody's business here
		MinVersion:         tls.VersionTLS13,
	})
	require.NoError(t, secure.Handshake())
	require.ErrorIs(t, keys.expire(1), errNoKey)
}
