package digestmd5

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Client is the client's side of one exchange: Answer and then Confirm, once each. No
// error has the password in it.
type Client struct {
	User, Password string
	// URI names the service, "zookeeper/zk-sasl-md5".
	URI string
	// Nonce is new in each exchange, and cannot be guessed.
	Nonce string

	proof proof // set by Answer
}

// Answer returns the answer to the server's first message.
func (c *Client) Answer(challenge []byte) (response []byte, err error) {
	fs, err := parse(challenge, challengeLimit)
	if err != nil {
		return nil, fmt.Errorf("challenge: %w", err)
	}
	c.proof, err = c.meet(fs)
	if err != nil {
		return nil, fmt.Errorf("challenge: %w", err)
	}
	p := c.proof
	all := []string{
		"username=" + quote(p.user), "nonce=" + quote(p.nonce), "nc=" + firstUse,
		"cnonce=" + quote(p.clientNonce), "digest-uri=" + quote(p.uri), "qop=auth",
		"response=" + p.of(ofClient),
	}
	if fs.first("charset") != "" {
		all = append(all, "charset=utf-8")
	}
	if p.realm != "" {
		all = append(all, "realm="+quote(p.realm))
	}
	return []byte(strings.Join(all, ",")), nil
}

// meet returns what the proofs are about, or why the challenge cannot be met.
func (c *Client) meet(challenge fields) (proof, error) {
	nonce, err := challenge.must("nonce")
	if err != nil {
		return proof{}, err
	}
	algorithm, err := challenge.must("algorithm")
	if err != nil {
		return proof{}, err
	}
	charset, err := challenge.get("charset")
	switch {
	case err != nil:
		return proof{}, err
	case algorithm != "md5-sess":
		return proof{}, fmt.Errorf("algorithm %q: must be md5-sess", algorithm)
	case !challenge.has("qop", "auth"):
		return proof{}, errors.New("qop: does not have auth")
	case charset != "" && !strings.EqualFold(charset, "utf-8"):
		return proof{}, fmt.Errorf("charset %q: must be utf-8", charset)
	case charset == "" && !isASCII(c.User+c.Password):
		return proof{}, errors.New("without charset utf-8, the login must be ASCII")
	}
	p := proof{
		user: c.User, realm: challenge.first("realm"), password: c.Password,
		nonce: nonce, clientNonce: c.Nonce, uri: c.URI,
	}
	if !utf8.ValidString(p.realm) {
		return proof{}, errors.New("realm: is not UTF-8")
	}
	return p, nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// Confirm checks that the server's second message proves that it knows the password.
func (c *Client) Confirm(rspauth []byte) error {
	fs, err := parse(rspauth, challengeLimit)
	if err != nil {
		return fmt.Errorf("the server's proof: %w", err)
	}
	given, err := fs.must("rspauth")
	if err != nil {
		return fmt.Errorf("the server's proof: %w", err)
	}
	if !equal(given, c.proof.of(ofServer)) {
		return errors.New("the server does not prove that it knows the password")
	}
	return nil
}

func equal(a, b string) bool {
	return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}
