package zktest_test

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// A step is one line of a script: a session, what it does, and with what.
//
//	c0 create /a data ephemeral    with go-zookeeper's client
//	r0 create2 /a data 0 world     with packets of our own
//
// Paths are below the script's base: "/a", or "." for the base itself. "!/a" is "/a" as
// it stands, "!" the empty path, "quota:/a" the node for the quotas of "/a". A token may
// be a quoted Go string; null stands for the null of the wire format.
type step struct {
	line      string
	who, verb string
	args      []string
}

func parse(line string) step {
	s := step{line: strings.TrimSpace(line)}
	tokens := split(s.line)
	if len(tokens) < 2 {
		panic("BUG: no step: " + line)
	}
	s.who, s.verb, s.args = tokens[0], tokens[1], tokens[2:]
	return s
}

// parseScript takes one step from each line of text that is neither empty nor a comment.
func parseScript(text string) []step {
	var steps []step
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			steps = append(steps, parse(line))
		}
	}
	return steps
}

func split(line string) []string {
	var tokens []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		quoted, err := strconv.QuotedPrefix(line)
		if err != nil {
			token, rest, _ := strings.Cut(line, " ")
			tokens, line = append(tokens, token), rest
			continue
		}
		token, err := strconv.Unquote(quoted)
		if err != nil {
			panic(fmt.Sprintf("BUG: %s: %v", line, err))
		}
		tokens, line = append(tokens, token), line[len(quoted):]
	}
	return tokens
}

// arguments are the tokens of a step that are not yet used up.
type arguments struct {
	base string
	left []string
}

func (a *arguments) more() bool { return len(a.left) > 0 }

func (a *arguments) next() string {
	if !a.more() {
		panic("BUG: a script's step has too few arguments")
	}
	token := a.left[0]
	a.left = a.left[1:]
	return token
}

func (a *arguments) or(token string) string {
	if a.more() {
		return a.next()
	}
	return token
}

func (a *arguments) path() string { return absolute(a.base, a.next()) }

// quotaRoot is above the quotas of all paths.
const quotaRoot = "/zookeeper/quota"

func absolute(base, token string) string {
	if literal, ok := strings.CutPrefix(token, "!"); ok {
		return literal
	}
	if of, ok := strings.CutPrefix(token, "quota:"); ok {
		return quotaRoot + absolute(base, of)
	}
	if token == "." {
		return base
	}
	return base + token
}

func (a *arguments) paths() []string {
	var all []string
	for _, token := range strings.Split(a.next(), ",") {
		if token != "" {
			all = append(all, absolute(a.base, token))
		}
	}
	return all
}

func (a *arguments) data() []byte { return bytesOf(a.or("")) }

// bytesOf also knows big:n, which stands for n bytes.
func bytesOf(token string) []byte {
	if token == "null" {
		return nil
	}
	if size, ok := strings.CutPrefix(token, "big:"); ok {
		return make([]byte, (&arguments{left: []string{size}}).int())
	}
	return []byte(token)
}

// modes are the names of the create flags.
var modes = map[string]int32{
	"persistent":         zk.FlagPersistent,
	"ephemeral":          zk.FlagEphemeral,
	"sequence":           zk.FlagSequence,
	"ephemeralSequence":  zk.FlagEphemeralSequential,
	"container":          zk.FlagContainer,
	"ttl":                zk.FlagTTL,
	"persistentSequence": zk.FlagSequence,
	"ttlSequence":        zk.FlagPersistentSequentialWithTTL,
}

func (a *arguments) int() int64 {
	token := a.next()
	if flag, ok := modes[token]; ok {
		return int64(flag)
	}
	n, err := strconv.ParseInt(token, 0, 64)
	if err != nil {
		panic(fmt.Sprintf("BUG: a script wants a number: %v", err))
	}
	return n
}

func (a *arguments) intOr(n int64) int64 {
	if a.more() {
		return a.int()
	}
	return n
}

// password is that of every user of a script.
const password = "secret"

// acl reads entries such as world:cdrwa,bob:r,auth:cdrwa. A name that is no scheme is a
// user's, and stands for the digest entry; scheme/id:perms is an entry as it stands.
func (a *arguments) acl() []zk.ACL {
	token := a.or("world:cdrwa")
	switch token {
	case "null":
		return nil
	case "none":
		return []zk.ACL{}
	}
	var all []zk.ACL
	for _, entry := range strings.Split(token, ",") {
		cut := strings.LastIndex(entry, ":")
		who, perms := entry[:cut], permissions(entry[cut+1:])
		scheme, id, literal := strings.Cut(who, "/")
		switch {
		case literal:
			all = append(all, zk.ACL{Perms: perms, Scheme: scheme, ID: id})
		case who == "world":
			all = append(all, zk.WorldACL(perms)...)
		case who == "auth":
			all = append(all, zk.AuthACL(perms)...)
		default:
			all = append(all, zk.DigestACL(perms, who, password)...)
		}
	}
	return all
}

func permissions(letters string) int32 {
	var perms int32
	for _, letter := range letters {
		bit := strings.IndexRune("rwcda", letter)
		if bit < 0 {
			panic("BUG: a script's permissions: " + letters)
		}
		perms |= 1 << bit
	}
	return perms
}
