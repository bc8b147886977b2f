package queues

import (
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/serve/text"
)

// idMost bounds what is shown of an identity, in characters.
const idMost = 100

// The permissions on a parent znode by which one can harm a lock, and what they are
// called.
var harmful = []struct {
	perm int32
	name string
}{{zk.PermCreate, "CREATE"}, {zk.PermDelete, "DELETE"}, {zk.PermAdmin, "ADMIN"}}

// Wider returns one who has harmful rights by the ACL of a directory that the ACL of a
// znode in it does not grant, and which. Of a hidden ACL, or one that was not expanded by
// a server, only the rights of the world are known.
func Wider(dir, node []zk.ACL, hidden bool) (who, rights string) {
	for _, entry := range dir {
		world := entry.Scheme == "world"
		if hidden && !world {
			continue
		}
		lacks := Missing(entry, node)
		var more []string
		for _, h := range harmful {
			if lacks&h.perm != 0 {
				more = append(more, h.name)
			}
		}
		if len(more) > 0 {
			id := entry.ID
			if entry.Scheme == "digest" {
				id, _, _ = strings.Cut(id, ":") // the rest is of a password
			}
			return fmt.Sprintf("%s:%s", entry.Scheme, text.Shorten(id, idMost)),
				strings.Join(more, ", ")
		}
	}
	return "", ""
}

// Missing are the rights of an entry that an ACL does not grant to the same.
func Missing(entry zk.ACL, acl []zk.ACL) int32 {
	granted := int32(0)
	for _, other := range acl {
		if other.Scheme == "world" || sameIdentity(entry, other) {
			granted |= other.Perms
		}
	}
	return entry.Perms &^ granted
}

// sameIdentity tells whether two entries are of the same. Servers show the digest of a
// password only to those who may change the ACL, and "x" to others.
func sameIdentity(a, b zk.ACL) bool {
	if a.Scheme == "digest" && b.Scheme == "digest" {
		user, digest, _ := strings.Cut(a.ID, ":")
		other, theirs, _ := strings.Cut(b.ID, ":")
		return user == other && (digest == theirs || digest == "x" || theirs == "x")
	}
	return a.Scheme == b.Scheme && a.ID == b.ID
}
