package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

// The permissions on a parent znode by which one can harm a lock, and what they are
// called.
var harmful = []struct {
	perm int32
	name string
}{{zk.PermCreate, "CREATE"}, {zk.PermDelete, "DELETE"}, {zk.PermAdmin, "ADMIN"}}

// rights compares who may do what with a directory and with the znodes in it. To delete a
// znode is a right on its parent, which may have been created by anybody.
func (d *doctor) rights(
	ctx context.Context, dir, sub string, children []string,
) error {
	open, err := d.aclOf(dir)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return nil
	case errors.Is(err, zk.ErrNoAuth):
		d.doubt("%s: no permission to read its ACL", dir)
		return nil
	case err != nil:
		return err
	}
	compared, more := guarded(sub, children)
	if len(compared) == 0 {
		d.ready(dir, open)
		return nil
	}
	var closed []string
	for _, child := range compared {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		node := zkpath.Join(dir, child)
		acl, err := d.aclOf(node)
		hidden := errors.Is(err, zk.ErrNoAuth)
		switch {
		case errors.Is(err, zk.ErrNoNode):
			continue
		case err != nil && !hidden:
			return err
		}
		if hidden {
			closed = append(closed, node)
		}
		if who, rights := wider(open, acl, hidden); who != "" {
			d.find("%s: %s has %s on this parent znode, but not on %s: DELETE "+
				"there permits to delete the znodes of others, which lose the lock; set "+
				"the ACL of the znodes on it, or use a path that only users of the "+
				"lock can create", dir, who, rights, node)
			return nil
		}
	}
	d.alike(d.doubt, dir, closed, "may not be read by this session: a client that may "+
		"not read the znode of another cannot wait for it")
	if len(closed) == 0 && more == 0 {
		d.well("%s: nobody has more rights on it than on the znodes in it", dir)
	}
	d.ready(dir, open)
	return nil
}

// ready compares a directory with what zklock would create: who logs in expects a lock
// that is not open to everybody.
func (d *doctor) ready(dir string, open []zk.ACL) {
	if who, rights := wider(open, d.target.acl, true); who != "" {
		d.doubt("%s: %s has %s on it, which a parent znode that zklock creates with "+
			"these flags does not grant", dir, who, rights)
	}
}

// guarded are the children whose ACL a directory's has to be as strict as, and how many
// more there are.
func guarded(sub string, children []string) (first []string, more int) {
	first, more = cut(queued(sub, children), lookMost)
	for _, child := range []string{markName, leasesDir, gateDir} {
		if sub == "" && slices.Contains(children, child) {
			first = append(first, child)
		}
	}
	return first, more
}

func (d *doctor) aclOf(path string) ([]zk.ACL, error) {
	acl, _, err := d.client.Unwrap().GetACL(d.client.ServerPath(path))
	return acl, err
}

// wider returns one who has harmful rights by the ACL of a directory that the ACL of a
// znode in it does not grant, and which. Of a hidden ACL, or one that was not expanded by
// a server, only the rights of the world are known.
func wider(dir, node []zk.ACL, hidden bool) (who, rights string) {
	for _, entry := range dir {
		world := entry.Scheme == "world"
		if hidden && !world {
			continue
		}
		lacks := missing(entry, node)
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
			return fmt.Sprintf("%s:%s", entry.Scheme, shorten(id, dataMost)),
				strings.Join(more, ", ")
		}
	}
	return "", ""
}

// missing are the rights of an entry that an ACL does not grant to the same.
func missing(entry zk.ACL, acl []zk.ACL) int32 {
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
