package digestmd5

import (
	"errors"
	"fmt"
	"strings"
)

// A Server is the server's side of one exchange: Challenge and then Judge, once each.
type Server struct {
	Realm, URI string
	// Nonce is new in each exchange.
	Nonce string
	// Passwords has those of the users.
	Passwords map[string]string
}

// Challenge returns the server's first message.
func (s *Server) Challenge() []byte {
	return []byte("realm=" + quote(s.Realm) + ",nonce=" + quote(s.Nonce) +
		",charset=utf-8,algorithm=md5-sess")
}

// Judge returns who has proved to know which user's password, and the server's own proof.
func (s *Server) Judge(response []byte) (user string, rspauth []byte, err error) {
	fs, err := parse(response, responseLimit)
	if err != nil {
		return "", nil, err
	}
	values := map[string]string{}
	for _, name := range []string{
		"username", "nonce", "nc", "cnonce", "digest-uri", "response",
	} {
		if values[name], err = fs.must(name); err != nil {
			return "", nil, err
		}
	}
	password, known := s.Passwords[values["username"]]
	p := proof{
		user: values["username"], realm: fs.first("realm"), password: password,
		nonce: s.Nonce, clientNonce: values["cnonce"], uri: values["digest-uri"],
	}
	switch {
	case !known:
		return "", nil, fmt.Errorf("no user %q", p.user)
	case values["nonce"] != s.Nonce, values["nc"] != firstUse:
		return "", nil, errors.New("another challenge is answered")
	case !strings.EqualFold(p.uri, s.URI):
		return "", nil, fmt.Errorf("digest-uri %q: must be %q", p.uri, s.URI)
	case !fs.has("qop", "auth"):
		return "", nil, errors.New("qop: must be auth")
	case !equal(values["response"], p.of(ofClient)):
		return "", nil, errors.New("wrong password")
	}
	return p.user, []byte("rspauth=" + p.of(ofServer)), nil
}
