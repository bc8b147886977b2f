package queues

import (
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestWider(t *testing.T) {
	t.Parallel()
	world, bob := zk.WorldACL(zk.PermAll), zk.DigestACL(zk.PermAll, "bob", "pw")
	shown := []zk.ACL{{Scheme: "digest", ID: "bob:x", Perms: zk.PermAll}}
	ann := zk.DigestACL(zk.PermAll, "ann", "pw")
	const harm = "CREATE, DELETE, ADMIN"
	reader := zk.WorldACL(zk.PermRead | zk.PermWrite)
	for name, c := range map[string]struct {
		dir, node   []zk.ACL
		hidden      bool
		who, rights string
	}{
		"the same":                  {world, world, false, "", ""},
		"the same, both creator's":  {bob, bob, false, "", ""},
		"the digest is not shown":   {bob, shown, false, "", ""},
		"nor that of the directory": {shown, bob, false, "", ""},
		"stricter":                  {bob, world, false, "", ""},
		"wider":                     {world, bob, false, "world:anyone", harm},
		"of somebody else":          {ann, bob, false, "digest:ann", harm},
		"only to read and write":    {reader, bob, false, "", ""},
		"only to delete": {
			zk.WorldACL(zk.PermDelete), reader, false, "world:anyone", "DELETE",
		},
		"hidden, of the world":   {world, nil, true, "world:anyone", harm},
		"hidden, of nobody else": {bob, nil, true, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			who, rights := Wider(c.dir, c.node, c.hidden)
			require.Equal(t, c.who, who)
			require.Equal(t, c.rights, rights)
		})
	}
}
