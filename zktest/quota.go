package zktest

import (
	"fmt"
	"strconv"
	"strings"
)

// A quota is data: znodes below /zookeeper/quota that clients create. A server keeps
// account of what is below the path that they name, and refuses nothing unless
// enforceQuota is set, which is not the default.
const (
	quotaRoot  = "/zookeeper/quota"
	quotaLimit = "zookeeper_limits"
	quotaStats = "zookeeper_stats"
)

// quotaOn is the path that a znode of a quota is about, "" if it is none of that name.
func quotaOn(path, name string) string {
	parent, child := split(path)
	if child != name {
		return ""
	}
	on, _ := strings.CutPrefix(parent, quotaRoot)
	if on == parent {
		return ""
	}
	return on
}

// quotaCreated notes a new znode.
func (t *tree) quotaCreated(path string) {
	if on := quotaOn(path, quotaLimit); on != "" {
		t.quotas[on] = struct{}{}
	}
	if on := quotaOn(path, quotaStats); on != "" {
		t.nodes[path].data = t.usage(on).encode()
	}
	t.charge(path, len(t.nodes[path].data), 1)
}

// quotaDeleted notes that a znode with so many bytes is gone.
func (t *tree) quotaDeleted(path string, bytes int) {
	if on := quotaOn(path, quotaLimit); on != "" {
		delete(t.quotas, on)
	}
	t.charge(path, -bytes, -1)
}

// charge changes the account that counts for path, that of the nearest quota above it.
func (t *tree) charge(path string, bytes, count int) {
	if len(t.quotas) == 0 {
		return
	}
	for on := path; on != ""; on, _ = split(on) {
		if _, ok := t.quotas[on]; !ok {
			continue
		}
		if n := t.nodes[quotaRoot+on+"/"+quotaStats]; n != nil {
			now := decodeUsage(n.data)
			n.data = usage{now.count + count, now.bytes + bytes}.encode()
		}
		return
	}
}

// A usage is how many znodes there are at and below a path, and how many bytes of data.
type usage struct{ count, bytes int }

func (t *tree) usage(on string) usage {
	var all usage
	if t.nodes[on] == nil {
		return all
	}
	for path, n := range t.nodes {
		if path == on || strings.HasPrefix(path, on+"/") {
			all.count++
			all.bytes += len(n.data)
		}
	}
	return all
}

func (u usage) encode() []byte {
	return fmt.Appendf(nil, "count=%d,bytes=%d", u.count, u.bytes)
}

// decodeUsage takes -1 for what the text does not say.
func decodeUsage(data []byte) usage {
	all := usage{-1, -1}
	for field := range strings.FieldsFuncSeq(string(data), func(r rune) bool {
		return r == ',' || r == ';'
	}) {
		key, value, _ := strings.Cut(field, "=")
		n, err := strconv.Atoi(value)
		if err != nil {
			continue
		}
		switch key {
		case "count":
			all.count = n
		case "bytes":
			all.bytes = n
		}
	}
	return all
}
