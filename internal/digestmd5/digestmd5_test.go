package digestmd5_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/digestmd5"
)

// The examples of RFC 2831, section 4.
func TestTheExamplesOfTheRFC(t *testing.T) {
	for name, c := range map[string]struct {
		nonce, clientNonce, uri, response, rspauth string
	}{
		"IMAP": {
			"OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "imap/elwood.innosoft.com",
			"d388dad90d4bbd760a152321f2143af7", "ea40f60335c427b5527b84dbabcdfffd",
		},
		"ACAP": {
			"OA9BSXrbuRhWay", "OA9BSuZWMSpW8m", "acap/elwood.innosoft.com",
			"6084c6db3fede7352c551284490fd0fc", "2f0b3d7c3c2e486600ef710726aa2eae",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := digestmd5.Client{
				User: "chris", Password: "secret", URI: c.uri, Nonce: c.clientNonce,
			}
			response, err := client.Answer([]byte(`realm="elwood.innosoft.com",nonce="` +
				c.nonce + `",qop="auth",algorithm=md5-sess,charset=utf-8`))
			require.NoError(t, err)
			require.Contains(t, string(response), "response="+c.response)
			require.NoError(t, client.Confirm([]byte("rspauth="+c.rspauth)))

			server := digestmd5.Server{
				Realm: "elwood.innosoft.com", URI: c.uri, Nonce: c.nonce,
				Passwords: map[string]string{"chris": "secret"},
			}
			user, rspauth, err := server.Judge(response)
			require.NoError(t, err)
			require.Equal(t, "chris", user)
			require.Equal(t, "rspauth="+c.rspauth, string(rspauth))
		})
	}
}

const uri = "zookeeper/zk-sasl-md5"

func pair(user, password string) (*digestmd5.Client, *digestmd5.Server) {
	return &digestmd5.Client{User: user, Password: password, URI: uri, Nonce: "c"},
		&digestmd5.Server{
			Realm: "zk-sasl-md5", URI: uri, Nonce: "s",
			Passwords: map[string]string{user: password},
		}
}

// Whatever is in a name or a password, both sides come to the same.
func TestNamesOfAllKinds(t *testing.T) {
	for _, name := range []string{
		"user", `quo"te\`, "a,b=c", "Jürgen", "Жук", "naïve Ж", " ", "\t", "é,\\\"",
	} {
		client, server := pair(name, name+"!")
		response, err := client.Answer(server.Challenge())
		require.NoError(t, err)
		user, rspauth, err := server.Judge(response)
		require.NoError(t, err, name)
		require.Equal(t, name, user)
		require.NoError(t, client.Confirm(rspauth))
	}
}

func TestChallengesThatCannotBeMet(t *testing.T) {
	const fine = `nonce="n",algorithm=md5-sess`
	for challenge, want := range map[string]string{
		"":                                 `no field "nonce"`,
		`nonce="",algorithm=md5-sess`:      `no field "nonce"`,
		`nonce="n"`:                        `no field "algorithm"`,
		`nonce="n",algorithm=md5`:          "must be md5-sess",
		fine + `,nonce="m"`:                `"nonce" comes twice`,
		fine + `,charset=utf-8,charset=a`:  `"charset" comes twice`,
		fine + `,charset=koi8-r`:           "must be utf-8",
		fine + `,qop="auth-int,auth-conf"`: "does not have auth",
		fine + `,realm="` + "\xff" + `"`:   "is not UTF-8",
		fine + `,realm="r`:                 "has no end",
		fine + `,realm="r\`:                "has no end",
		fine + `,realm="r"x`:               "no comma",
		fine + `,realm`:                    "has no name",
		fine + `,=1`:                       "has no name",
		fine + `,realm=`:                   "has no value",
		fine + `,a="` + strings.Repeat("a", 2048) + `"`: "must be less than 2048",
	} {
		client, _ := pair("user", "secret")
		_, err := client.Answer([]byte(challenge))
		require.ErrorContains(t, err, want, challenge)
	}
	client, _ := pair("Жук", "secret")
	_, err := client.Answer([]byte(fine))
	require.ErrorContains(t, err, "must be ASCII")
	for _, challenge := range []string{
		fine, fine + `,realm="a",realm="b"`, " , " + fine + " ,, ",
		fine + `,qop="auth-int, auth"`, fine + ",Charset=UTF-8,cipher=\"rc4\"",
	} {
		client, _ := pair("user", "secret")
		_, err := client.Answer([]byte(challenge))
		require.NoError(t, err, challenge)
	}
}

func TestWhatProvesNothing(t *testing.T) {
	client, server := pair("user", "secret")
	response, err := client.Answer(server.Challenge())
	require.NoError(t, err)
	for change, want := range map[*regexp.Regexp]string{
		regexp.MustCompile("username=\"user"): `no user "x"`,
		regexp.MustCompile("nonce=\"s"):       "another challenge",
		regexp.MustCompile("nc=00000001"):     "another challenge",
		regexp.MustCompile("digest-uri=\"z"):  "digest-uri",
		regexp.MustCompile("qop=auth"):        "qop: must be auth",
		regexp.MustCompile("response=."):      "wrong password",
		regexp.MustCompile("realm=\"z"):       "wrong password",
		regexp.MustCompile("cnonce=\"c"):      "wrong password",
	} {
		changed := change.ReplaceAllStringFunc(string(response), func(s string) string {
			name, value, _ := strings.Cut(s, "=")
			if strings.HasPrefix(value, `"`) {
				return name + `="x`
			}
			return name + "=x"
		})
		_, _, err := server.Judge([]byte(changed))
		require.ErrorContains(t, err, want, changed)
	}
	_, rspauth, err := server.Judge(response)
	require.NoError(t, err)
	require.NoError(t, client.Confirm(rspauth))
	for wrong, want := range map[string]string{
		"":                                      "no field",
		"rspauth=":                              "has no value",
		"rspauth=00":                            "does not prove",
		strings.ToUpper(string(rspauth)):        "does not prove",
		string(rspauth) + "," + string(rspauth): "twice",
		string(rspauth) + strings.Repeat(" ", 2048): "less than 2048",
	} {
		require.ErrorContains(t, client.Confirm([]byte(wrong)), want, wrong)
	}
}

// Nothing that a server sends makes a client panic, take its proof for granted, or tell
// the password.
func FuzzServerMessages(f *testing.F) {
	client, server := pair("user", "hunter2secret")
	f.Add(server.Challenge(), []byte("rspauth=00"))
	f.Add([]byte(`nonce="n",algorithm=md5-sess,realm="a\"b",qop=auth`), []byte("rspauth"))
	f.Add([]byte(`,,a="\`), []byte(`rspauth="`))
	f.Fuzz(func(t *testing.T, challenge, rspauth []byte) {
		response, err := client.Answer(challenge)
		if err != nil {
			require.NotContains(t, err.Error(), "hunter2secret")
			return
		}
		require.NotContains(t, string(response), "hunter2secret")
		require.Less(t, len(response), 3*len(challenge)+400)
		require.Error(t, client.Confirm(rspauth))
	})
}

// Nor anything that a client sends a server.
func FuzzResponse(f *testing.F) {
	client, server := pair("user", "secret")
	response, err := client.Answer(server.Challenge())
	require.NoError(f, err)
	proof := regexp.MustCompile(`response=(\w+)`).FindStringSubmatch(string(response))[1]
	f.Add(response)
	f.Add(response[:len(response)-1])
	f.Fuzz(func(t *testing.T, other []byte) {
		if user, _, err := server.Judge(other); err == nil {
			require.Equal(t, "user", user)
			require.Contains(t, string(other), proof, "nobody else can know it")
		}
	})
}
