package zktest

import (
	"iter"
	"strings"
)

// validPath says whether a znode may have this path, as PathUtils.validatePath does.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	names, ok := strings.CutPrefix(path, "/")
	if !ok || strings.ContainsFunc(path, forbidden) {
		return false
	}
	for name := range strings.SplitSeq(names, "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return true
}

// forbidden tells the characters that no path may have. Java sees those above ffff as two
// surrogates, which are among them.
func forbidden(c rune) bool {
	return c <= 0x1f || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff ||
		c >= 0xfff0
}

// upwards goes from a valid path to the root.
func upwards(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(path) && path != "/" {
			parent, _ := split(path)
			path = watchedAs(parent)
		}
	}
}
