package client_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/internal/zkserver"
)

// The constructors refuse what the server refuses, and nothing else:
// PathUtils.validatePath, which sees UTF-16.
func TestPathsAreTheServers(t *testing.T) {
	t.Parallel()
	zkserver.Test(t, func(t *testing.T) {
		p, root := locktest.SharedPeer(t), zkserver.Path(t)
		_, err := p.Conn.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
		require.NoError(t, err)
		names := []string{
			".a", "...", "a b", "a.", "..a", "lock-0000000001", "世界", "é",
			"\ufffd", "\xff", "\xed\xa0\x80", "a\U0001F600", "\U00020000b",
		}
		for _, r := range []rune{
			0, 1, 0x1e, 0x1f, 0x20, 0x7e, 0x7f, 0x80, 0x9e, 0x9f, 0xa0, 0x2028, 0xd7fe,
			0xd7ff,
			0xe000, 0xf000, 0xf8fe, 0xf8ff, 0xf900, 0xffef, 0xfff0, 0xfff1, 0xfffe,
			0xffff,
			0x10000, 0x1f600, 0x20000, 0x10ffff,
		} {
			names = append(names, fmt.Sprintf("%04x-%c", r, r))
		}
		for _, name := range names {
			path := root + "/" + name
			// A Multi sends what it is given; elsewhere the client has a check of its
			// own.
			_, served := p.Conn.Multi(&zk.CreateRequest{
				Path: path, Acl: zk.WorldACL(zk.PermAll),
			})
			if served != nil {
				require.ErrorIs(t, served, zk.ErrBadArguments, "%q", path)
			}
			_, err := recipes.NewInterProcessMutex(p.Conn, path)
			if err != nil {
				require.ErrorIs(t, err, zk.ErrInvalidPath, "%q", path)
			}
			_, client := p.Conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
			refused := served != nil || errors.Is(client, zk.ErrInvalidPath)
			require.Equal(t, refused, err != nil,
				"%q: the server says %v, the client %v, the constructor %v",
				path, served, client, err)
		}
	})
}
