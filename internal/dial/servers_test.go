package dial_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/dial"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

func TestParseConnectString(t *testing.T) {
	for s, want := range map[string]struct {
		servers []string
		chroot  string
	}{
		"a":                       {[]string{"a:2181"}, "/"},
		"a/":                      {[]string{"a:2181"}, "/"},
		" a:1 , 10.0.0.1,b:65535": {[]string{"a:1", "10.0.0.1:2181", "b:65535"}, "/"},
		"[::1],[fe80::2]:3/b/c":   {[]string{"[::1]:2181", "[fe80::2]:3"}, "/b/c"},
		"a:02181/b c":             {[]string{"a:02181"}, "/b c"},
	} {
		servers, chroot, err := dial.ParseConnectString(s)
		require.NoError(t, err, s)
		require.Equal(t, want.servers, servers, s)
		require.Equal(t, want.chroot, chroot, s)
	}
	for s, why := range map[string]string{
		"":                          "connect string is empty",
		"a,,b":                      `server "": has no host`,
		"/b":                        `server "": has no host`,
		"a b":                       `server "a b": is not a host name`,
		"u@a":                       `server "u@a": is not a host name`,
		"zk://a/b":                  `has a scheme; want host:port,host:port/chroot`,
		"a:0":                       `port "0" is not between`,
		"a:65536":                   `port "65536" is not between`,
		"::1":                       "write an IPv6 address in brackets, such as [::1]",
		"::1:2181":                  "such as [::1]:2181",
		"h:1:2":                     `address h:1:2: too many colons in address`,
		"2001:db8:0:0:0:0:0:1:2181": "such as [2001:db8:0:0:0:0:0:1]:2181",
		"a/b,c/b":                   `chroot "/b,c/b" has a comma`,
		"a/b/":                      `connect string: chroot: path "/b/" ends in "/"`,
		"a/b/../c":                  `has a name ".." in it`,
	} {
		_, _, err := dial.ParseConnectString(s)
		require.ErrorContains(t, err, why, s)
	}
}

// What is parsed can be dialled, and parses again as itself.
func FuzzParseConnectString(f *testing.F) {
	for _, s := range []string{
		"a", "a:1,b", " a , b:2/c", "[::1]:3", "[::1]", "a/", "a/b/c", "::1",
		"a:b", "[]:1", "a,/b", " ", "zk://a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, chroot, err := dial.ParseConnectString(s)
		if err != nil {
			require.ErrorContains(t, err, "connect string")
			return
		}
		require.NotEmpty(t, servers)
		for _, server := range servers {
			host, port, err := net.SplitHostPort(server)
			require.NoError(t, err)
			require.NotEmpty(t, host)
			n, err := strconv.ParseUint(port, 10, 16)
			require.NoError(t, err)
			require.NotZero(t, n)
		}
		require.NoError(t, zkpath.Check(chroot))
		same := strings.Join(servers, ",") + chroot
		again, sameChroot, err := dial.ParseConnectString(same)
		require.NoError(t, err)
		require.Equal(t, servers, again)
		require.Equal(t, chroot, sameChroot)
	})
}
