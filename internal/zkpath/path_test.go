package zkpath_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkpath"
)

func TestCheckSaysWhatIsWrong(t *testing.T) {
	for bad, why := range map[string]string{
		"":           "is empty",
		"a":          `does not begin with "/"`,
		"./a":        `does not begin with "/"`,
		"/a/":        `ends in "/"`,
		"//":         `ends in "/"`,
		"//a":        "has an empty name in it",
		"/a//b":      "has an empty name in it",
		"/.":         `has a name "." in it`,
		"/a/../b":    `has a name ".." in it`,
		"/a\x00":     "has the character U+0000 in it",
		"/a\u007f/b": "has the character U+007F in it",
		"/\xff":      "has the character U+FFFD in it",
		"/😀":         "has the character U+1F600 in it",
	} {
		err := zkpath.Check(bad)
		require.ErrorIs(t, err, zk.ErrInvalidPath, bad)
		require.ErrorContains(t, err, fmt.Sprintf("path %q %s", bad, why))
	}
	for _, good := range []string{
		"/", "/a", "/a/b", "/.a", "/...", "/a b", "/a.", "/世界",
	} {
		require.NoError(t, zkpath.Check(good), good)
	}
}

func TestJoinAndSplit(t *testing.T) {
	for _, c := range []struct{ dir, path, joined, parent, name string }{
		{"/", "/", "/", "/", ""},
		{"/", "", "/", "/", ""},
		{"/", "a", "/a", "/", "a"},
		{"/", "/a", "/a", "/", "a"},
		{"/a", "/", "/a", "/", "a"},
		{"/a", "", "/a", "/", "a"},
		{"/a", "b", "/a/b", "/a", "b"},
		{"/a", "/b", "/a/b", "/a", "b"},
		{"/a/b", "/c/d", "/a/b/c/d", "/a/b/c", "d"},
		// What is no path stays none.
		{"/a", "/..", "/a/..", "/a", ".."},
		{"/a", "//b", "/a//b", "/a/", "b"},
		{"/", "//b", "//b", "/", "b"},
		{"/a", "/b/", "/a/b/", "/a/b", ""},
	} {
		require.Equal(t, c.joined, zkpath.Join(c.dir, c.path), "%+v", c)
		parent, name := zkpath.Split(c.joined)
		require.Equal(t, c.parent, parent, "%+v", c)
		require.Equal(t, c.name, name, "%+v", c)
		require.Equal(t, c.parent, zkpath.Parent(c.joined), "%+v", c)
	}
	parent, name := zkpath.Split("a")
	require.Equal(t, "/", parent)
	require.Equal(t, "a", name)
}

// serverRefuses is PathUtils.validatePath in other words.
func serverRefuses(p string) bool {
	forbidden := func(unit uint16) bool {
		return unit <= 0x1f || 0x7f <= unit && unit <= 0x9f ||
			0xd800 <= unit && unit <= 0xf8ff || 0xfff0 <= unit
	}
	return !strings.HasPrefix(p, "/") || p != path.Clean(p) ||
		slices.ContainsFunc(utf16.Encode([]rune(p)), forbidden)
}

func FuzzCheck(f *testing.F) {
	for _, p := range []string{
		"", "/", "a", "/a/b", "/a//b", "/a/", "/./a", "/..", "/\xff", "/\U0010ffff",
	} {
		f.Add(p)
	}
	for _, edge := range []rune{
		0, 0x1f, 0x7f, 0x9f, 0xd7ff, 0xe000, 0xf8ff, 0xfff0, 0x10000,
	} {
		for r := max(edge-1, 0); r <= edge+1; r++ {
			f.Add("/" + string(r))
		}
	}
	f.Fuzz(func(t *testing.T, p string) {
		err := zkpath.Check(p)
		require.Equal(t, serverRefuses(p), err != nil, "%q: %v", p, err)
	})
}

func FuzzJoin(f *testing.F) {
	for _, c := range [][2]string{
		{"/", "/"},
		{"/", "/a"},
		{"/a", "b"},
		{"/a", "/b/c"},
		{"/a", ""},
		{"/a", "/../b"},
		{"/a", "b/"},
		{"/a", "//b"},
		{"/", "//"},
		{"/a/b", "."},
	} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, dir, p string) {
		if zkpath.Check(dir) != nil {
			t.Skip("no directory")
		}
		joined := zkpath.Join(dir, p)
		if zkpath.Check("/"+strings.TrimPrefix(p, "/")) != nil {
			require.Error(
				t, zkpath.Check(joined), "Join(%q, %q) has made %q valid", dir, p, joined,
			)
			return
		}
		require.NoError(t, zkpath.Check(joined))
		require.Equal(t, path.Join(dir, p), joined)

		parent, name := zkpath.Split(joined)
		require.Equal(t, path.Dir(joined), parent)
		require.Equal(t, parent, zkpath.Parent(joined))
		require.Equal(t, strings.TrimPrefix(path.Base(joined), "/"), name)
		require.Equal(t, joined, zkpath.Join(parent, name))
	})
}
