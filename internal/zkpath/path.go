// Package zkpath checks, joins and splits the paths of znodes.
//
// A path is absolute, "/" or "/a/b", and has one spelling only: no "/" at its end, no two
// in a row, no "." or ".." in it. [Check] tells whether a path is one. For paths that
// are, [Join] and [Split] do what [path.Join], [path.Dir] and [path.Base] do. Of those
// that are not they mend nothing, where the package path would clean them: "/app" joined
// with "/../x" is "/app/../x", which ZooKeeper refuses, and not "/x".
package zkpath

import (
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// Check returns an error that matches zk.ErrInvalidPath if ZooKeeper would refuse path
// (PathUtils.validatePath). zk.Conn by itself refuses only a part of that.
func Check(path string) error {
	if why := flaw(path); why != "" {
		return fmt.Errorf("path %q %s: %w", Brief(path), why, zk.ErrInvalidPath)
	}
	return nil
}

// flaw says what is wrong with a path, "" where nothing is.
func flaw(path string) string {
	switch {
	case path == "":
		return "is empty"
	case path[0] != '/':
		return `does not begin with "/"`
	case path == "/":
		return ""
	case strings.HasSuffix(path, "/"):
		return `ends in "/"`
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		switch name {
		case "":
			return "has an empty name in it"
		case ".", "..":
			return `has a name "` + name +
				`" in it; relative paths do not exist in ZooKeeper`
		}
	}
	for _, r := range path {
		// The server sees UTF-16: what is above ffff are two surrogates to it, which are
		// among those from d800. Bytes that are no UTF-8 are fffd here as there.
		if r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff ||
			r >= 0xfff0 {
			return fmt.Sprintf("has the character %U in it", r)
		}
	}
	return ""
}

// Join returns path below dir. path is the name of a child, or a whole path, which is
// then taken from dir instead of from the root: Join("/a", "b") and Join("/a", "/b") are
// "/a/b". So Join("/a", "/") is "/a", and Join("/", path) is path. What it returns is
// valid if both are, and invalid if dir is valid and path is not: no path leads out of
// dir.
func Join(dir, path string) string {
	rooted := strings.HasPrefix(path, "/")
	switch {
	case path == "" || path == "/":
		return dir
	case dir == "/" && rooted:
		return path
	case dir == "/" || rooted:
		return dir + path
	}
	return dir + "/" + path
}

// Split returns the parent of a path and its name: "/a" and "b" of "/a/b". Join undoes
// it. The parent of "/a" is "/", as is that of "/", which has no name.
func Split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "/", path[i+1:]
	}
	return path[:i], path[i+1:]
}

// Parent returns the path of the znode above, "/" for that of "/" itself.
func Parent(path string) string {
	parent, _ := Split(path)
	return parent
}

// briefly is how much of a path an error shows.
const briefly = 1024

// Brief returns path as errors and logs show it: of one that is very long, the beginning.
func Brief(path string) string {
	if len(path) <= briefly {
		return path
	}
	begin := strings.ToValidUTF8(path[:briefly], "")
	return fmt.Sprintf("%s… (%d bytes)", begin, len(path))
}
