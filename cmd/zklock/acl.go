package main

import (
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
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
	case c.hasIdentity():
		given = []string{creatorACL}
	default:
		given = []string{worldACL}
	}
	if slices.Contains(given, creatorACL) && !c.hasIdentity() {
		return nil, usage("--acl %s: needs --auth, a SASL login, or --tls-cert",
			creatorACL)
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

// hasIdentity says whether the servers can know who this is.
func (c *connection) hasIdentity() bool {
	return len(c.auth) > 0 || c.hasLogin() || c.tlsCert != ""
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
		return nil, usage("--acl %s: want %s, %s or SCHEME:ID:PERMS", echoACL(value),
			creatorACL, worldACL)
	}
	id, letters := rest[:at], rest[at+1:]
	perms := int32(0)
	for _, letter := range letters {
		bit := strings.IndexRune("rwcda", letter) // in the order of zk.PermRead and so on
		if bit < 0 {
			return nil, badPerms(value, letter)
		}
		perms |= zk.PermRead << bit
	}
	if perms == 0 {
		return nil, usage("--acl %s: has no permission; give some of cdrwa",
			echoACL(value))
	}
	return []zk.ACL{{Scheme: scheme, ID: id, Perms: perms}}, nil
}

func badPerms(value string, letter rune) error {
	if shown := echoACL(value); shown != value { // a letter of a password is none to show
		return usage("--acl %s: want SCHEME:ID:PERMS, with PERMS of cdrwa", shown)
	}
	return usage("--acl %s: %q is no permission; give some of cdrwa", value, letter)
}

// echoACL is echo for a value of --acl: what is of the world or of an address is no
// password.
func echoACL(value string) string {
	if strings.HasPrefix(value, "world:anyone") || strings.HasPrefix(value, "ip:") {
		return value
	}
	return echo(value)
}
