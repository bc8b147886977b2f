package recipes

import (
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// checkPath refuses what ZooKeeper refuses (PathUtils.validatePath), part of which the client
// lets through. Its errors match zk.ErrInvalidPath.
func checkPath(path string) error {
	bad := func(why string) error { return fmt.Errorf("path %q: %s: %w", path, why, zk.ErrInvalidPath) }
	switch {
	case path == "":
		return bad("is empty")
	case path[0] != '/':
		return bad(`does not begin with "/"`)
	case path == "/":
		return nil
	case strings.HasSuffix(path, "/"):
		return bad(`ends in "/"`)
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		switch name {
		case "":
			return bad("has an empty name in it")
		case ".", "..":
			return bad(`has a name "` + name + `" in it; relative paths do not exist in ZooKeeper`)
		}
	}
	for _, r := range path {
		// The server sees UTF-16: what is above ffff are two surrogates to it, which are among
		// those from d800. Bytes that are no UTF-8 are fffd here as there.
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 {
			return bad(fmt.Sprintf("has the character %U in it", r))
		}
	}
	return nil
}
