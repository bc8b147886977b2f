package queues_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

// JSON has no bytes but those of UTF-8, and no byte of a row is lost.
func TestJSONLosesNoByte(t *testing.T) {
	for _, odd := range []string{"plain", "\u202e", "\xff", "a\xfeb\xff"} {
		path, node := "/a"+odd, "/a"+odd+"/"+odd
		var out strings.Builder
		require.NoError(t, text.WriteJSON(&out, queues.Row{
			Path: path, Node: node, Nodes: []string{node, "/b"}, Data: odd,
		}.Exact()))
		var back queues.Row
		require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
		whole := func(text string, encoded []byte) string {
			if encoded == nil {
				return text
			}
			require.Equal(t, strings.ToValidUTF8(string(encoded), "\ufffd"), text)
			return string(encoded)
		}
		got := append(back.Nodes64, nil, nil)
		require.Equal(t, odd, whole(back.Data, back.Data64))
		require.Equal(t, path, whole(back.Path, back.Path64))
		require.Equal(t, node, whole(back.Nodes[0], got[0]))
		require.Equal(t, "/b", whole(back.Nodes[1], got[1]))
	}
}

// A directory is that of a lock by what is in it, and of a semaphore also by its leases.
func TestLockAt(t *testing.T) {
	for _, c := range []struct {
		dir, child, want string
	}{
		{"/a", "x-lock-0000000001", "/a"},
		{"/a/leases", "x-lease-0000000001", "/a"},
		{"/a/leases", "x-lock-0000000001", "/a/leases"},
		{"/leases", "x-lease-0000000001", "/leases"},
		{"/a/b", "x-lease-0000000001", "/a/b"},
		{"/", "x-lock-0000000001", ""},
		{"/a/leases", "config", ""},
	} {
		require.Equal(t, c.want, queues.LockAt(c.dir, []string{c.child}), c.dir)
	}
}
