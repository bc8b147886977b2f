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

const (
	creatorACL = "creator"
	worldACL   = "world"
)

// rights is the ACL of all that is created.
func (c *connection) rights() ([]zk.ACL, error) {
	given := c.acl
	switch {
	case len(given) > 0:
	case len(c.auth) > 0:
		given = []string{creatorACL}
	default:
		given = []string{worldACL}
	}
	if slices.Contains(given, creatorACL) && len(c.auth) == 0 && c.tlsCert == "" {
		return nil, usage("--acl %s: needs --auth, or --tls-cert", creatorACL)
	}
	var all []zk.ACL
	for _, value := range given {
		acl, err := parseACL(value)
		if err != nil {
			return nil, err
		}
		all = append(all, acl...)
	}
	return all, nil
}

// parseACL reads one value of --acl. An id can have colons in it.
func parseACL(value string) ([]zk.ACL, error) {
	switch value {
	case creatorACL:
		return zk.AuthACL(zk.PermAll), nil
	case worldACL:
		return zk.WorldACL(zk.PermAll), nil
	}
	scheme, rest, _ := strings.Cut(value, ":")
	at := strings.LastIndexByte(rest, ':')
	if scheme == "" || at < 0 {
		return nil, usage("--acl %s: want %s, %s or SCHEME:ID:PERMS", value, creatorACL,
			worldACL)
	}
	id, letters := rest[:at], rest[at+1:]
	perms := int32(0)
	for _, letter := range letters {
		bit := strings.IndexRune("rwcda", letter) // in the order of zk.PermRead and so on
		if bit < 0 {
			return nil, usage("--acl %s: %q is no permission; give some of cdrwa", value,
				letter)
		}
		perms |= zk.PermRead << bit
	}
	if perms == 0 {
		return nil, usage("--acl %s: has no permission; give some of cdrwa", value)
	}
	return []zk.ACL{{Scheme: scheme, ID: id, Perms: perms}}, nil
}

// makeChroot makes the chroot where it is missing, unless the world may have all rights
// on it: then Connect does. It takes a session of its own.
func (t *target) makeChroot(ctx context.Context) error {
	if t.chroot == "/" || slices.Equal(t.acl, zk.WorldACL(zk.PermAll)) {
		return nil
	}
	client, err := t.open(ctx, "/")
	if err != nil {
		return err
	}
	defer client.Close()
	if err := t.makeZnode(client.Unwrap(), t.chroot); err != nil {
		return fmt.Errorf("create chroot %s: %w", t.chroot, err)
	}
	return nil
}

// makeZnode makes a znode with its parents, from the bottom up: there may be no
// permission above what exists.
func (t *target) makeZnode(conn *zk.Conn, path string) error {
	exists, _, err := conn.Exists(path)
	if err != nil || exists {
		return err
	}
	if parent := zkpath.Parent(path); parent != "/" {
		if err := t.makeZnode(conn, parent); err != nil {
			return err
		}
	}
	_, err = conn.Create(path, nil, zk.FlagPersistent, t.acl)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}
