package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/session"
)

// refusing is a Conn that ends every call with an error.
type refusing struct {
	session.Conn
	err error
}

func (r *refusing) Create(string, []byte, int32, []zk.ACL) (string, error) { return "", r.err }
func (r *refusing) SessionID() int64                                       { return 1 }
func (r *refusing) State() zk.State                                        { return zk.StateHasSession }

func TestRefusalsNameTheRequest(t *testing.T) {
	wrapped := fmt.Errorf("chroot: %w", zk.ErrNoAuth)
	const lacks = " (the session lacks CREATE on "
	for _, c := range []struct {
		path string
		err  error
		text string
	}{
		{"/a/b", zk.ErrNoAuth, "create /a/b: " + zk.ErrNoAuth.Error() + lacks + "/a)"},
		{"/a", zk.ErrNoAuth, "create /a: " + zk.ErrNoAuth.Error() + lacks + "/)"},
		{"/a", wrapped, "create /a: chroot: " + zk.ErrNoAuth.Error()},
		{"/a", zk.ErrNodeExists, "create /a: " + zk.ErrNodeExists.Error()},
		{"/a", errors.New("unknown error: -6"), "create /a: unknown error: -6"},
		{"/a", zk.ErrConnectionClosed, zk.ErrConnectionClosed.Error()},
	} {
		conn := &refusing{err: c.err}
		s := session.Use(conn, config(0))
		_, err := s.Conn.Create(c.path, nil, 0, nil)
		s.Done()
		require.ErrorIs(t, err, c.err)
		require.EqualError(t, err, c.text)
		require.Equal(t, session.Unimplemented(c.err), session.Unimplemented(err))
	}
}
