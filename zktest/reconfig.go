package zktest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const configPath = "/zookeeper/config"

// WithReconfig makes the servers of an ensemble accept reconfig (reconfigEnabled), from a
// super user or a client that may write to /zookeeper/config. The configuration is data:
// a server that leaves it goes on, and none is started that joins it. Without this option
// servers reject reconfig. A single server knows no reconfig in any case.
func WithReconfig() Option { return option(func(s *settings) { s.reconfig = true }) }

// A membership is what a server knows of the ensemble to which it belongs.
type membership struct {
	reconfig bool // is enabled
	// Is a server in contact with the leader? nil: there is no ensemble.
	following func(id int64) bool
}

// configureLocked gives a new server the configuration with which the ensemble starts. It
// has a version only if it may change.
func (c *Cluster) configureLocked(s *Server) {
	s.tree.membership.reconfig = c.reconfig
	if c.size == 1 {
		return
	}
	s.tree.membership.following = func(id int64) bool {
		return 0 < id && id <= int64(c.size) && c.servers[id-1].inContactLocked()
	}
	first := config{members: map[int64]string{}}
	for id := range int64(c.size) {
		first.members[id+1] = fmt.Sprintf("zktest-%d:2888:3888:participant", id+1)
	}
	if c.reconfig {
		first.version = 1 << 32 // the first leader's first zxid
	}
	n := s.tree.nodes[configPath]
	n.data = first.encode()
	n.stat.version, n.stat.mzxid = -1, first.version
	n.stat.mtime = c.began.UnixMilli()
}

// A config is the text of /zookeeper/config.
type config struct {
	members map[int64]string // by the id of a server
	version int64
}

func (c config) encode() []byte {
	var b []byte
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		b = fmt.Appendf(b, "server.%d=%s\n", id, c.members[id])
	}
	return fmt.Appendf(b, "version=%x", c.version)
}

func decodeConfig(data []byte) config {
	c := config{members: map[int64]string{}}
	for line := range strings.SplitSeq(string(data), "\n") {
		if hex, ok := strings.CutPrefix(line, "version="); ok {
			c.version, _ = strconv.ParseInt(hex, 16, 64) // it is ours
			continue
		}
		c.join(line)
	}
	return c
}

// join takes over the address of a server, "server.1=host:2888:3888:participant;2181",
// and says what is wrong with it.
func (c config) join(line string) code {
	key, spec, ok := strings.Cut(line, "=")
	if !ok || strings.Contains(spec, "=") {
		return codeBadArguments
	}
	id, err := strconv.ParseInt(key[strings.LastIndexByte(key, '.')+1:], 10, 64)
	if err != nil {
		return codeMarshalling // the server stumbles over the number
	}
	peer, client, hasClient := strings.Cut(spec, ";")
	parts := strings.Split(peer, ":")
	if len(parts) == 3 {
		parts = append(parts, "participant")
	}
	if len(parts) != 4 {
		return codeBadArguments
	}
	spec = strings.Join(parts, ":")
	if hasClient {
		if !strings.Contains(client, ":") {
			client = "0.0.0.0:" + client
		}
		spec += ";" + client
	}
	c.members[id] = spec
	return codeOK
}

// voters are the servers that count.
func (c config) voters() []int64 {
	var ids []int64
	for id, spec := range c.members {
		if strings.Contains(spec, ":participant") {
			ids = append(ids, id)
		}
	}
	return ids
}

type reconfigRequest struct {
	joining, leaving string
	members          []byte // nil: those that there are, but for the above
	version          int64
}

func (d *decoder) reconfig() reconfigRequest {
	return reconfigRequest{
		joining: d.text(), leaving: d.text(), members: d.buffer(), version: d.long(),
	}
}

// reconfig judges in the order of PrepRequestProcessor.
func (j *judge) reconfig(r reconfigRequest) (txn, code) {
	of := j.tree.membership
	switch {
	case !of.reconfig:
		return txn{}, codeReconfigDisabled
	case of.following == nil:
		return txn{}, codeUnimplemented // the connection stays open here
	}
	now := decodeConfig(j.tree.nodes[configPath].data)
	if r.version != -1 && r.version != now.version {
		return txn{}, codeBadVersion
	}
	if err := now.change(r); err != codeOK {
		return txn{}, err
	}
	voters := now.voters()
	if len(voters) < 2 {
		return txn{}, codeBadArguments
	}
	if len(slices.DeleteFunc(slices.Clone(voters), of.following)) > (len(voters)-1)/2 {
		return txn{}, codeNewConfigNoQuorum
	}
	if _, err := j.existing(configPath, permWrite); err != codeOK {
		return txn{}, err
	}
	now.version = j.zxid
	x := j.txn(opReconfig)
	x.path, x.data, x.version = configPath, now.encode(), -1
	return x, codeOK
}

// change carries out what a request asks for.
func (c config) change(r reconfigRequest) code {
	if r.members != nil {
		clear(c.members)
		for _, line := range strings.FieldsFunc(string(r.members), func(r rune) bool {
			return r == ',' || r == '\n'
		}) {
			if err := c.join(line); err != codeOK {
				return codeBadArguments
			}
		}
		return codeOK
	}
	for _, text := range list(r.leaving) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return codeMarshalling // the server stumbles over it
		}
		delete(c.members, id)
	}
	for _, line := range list(r.joining) {
		if !strings.Contains(line, ";") {
			return codeBadArguments // a port for clients is missing
		}
		if err := c.join(line); err != codeOK {
			return err
		}
	}
	return codeOK
}

// list are the parts of a text between commas, without spaces.
func list(text string) []string {
	var all []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			all = append(all, part)
		}
	}
	return all
}
