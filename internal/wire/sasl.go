package wire

import (
	"fmt"
	"io"

	"github.com/go-zookeeper/zk"
)

// saslLimit is how many bytes a message of the server's has at most. Kerberos has the
// tickets of a user of many groups among them.
const saslLimit = 128 << 10

// AskSASL sends a message of an exchange to w, and returns the answer, nil if it is null.
// It is called before Read.
func (s *Stream) AskSASL(
	w io.Writer, xid int32, token []byte,
) (answer []byte, err error) {
	head, err := s.ask(w, packet(xid, opSASL, buffer(token)))
	if err != nil {
		return nil, err
	}
	announced, limit := int(number(head)), min(saslLimit, s.maxReply)
	switch code := number(head[replyError:]); {
	case announced < replyHead-lengthSize || announced > limit:
		return nil, malformed("the server's answer has %d bytes: must be from %d to %d",
			announced, replyHead-lengthSize, limit)
	case code == codeAuthFailed && len(token) == 0:
		return nil, fmt.Errorf("the server rejects the mechanism, before it has seen "+
			"credentials; from 3.9.6 on it accepts DIGEST-MD5 only with "+
			"zookeeper.fips-mode=false (%w)", zk.ErrAuthFailed)
	case code == codeAuthFailed || code == codeUnauthenticated:
		return nil, fmt.Errorf("the server refuses it: the user is not known, or the "+
			"credentials are wrong or not valid any more (%w)", zk.ErrAuthFailed)
	case code != 0:
		return nil, fmt.Errorf("the server refuses it with error code %d; does it "+
			"know SASL? (%w)", code, zk.ErrAuthFailed)
	}
	return s.readToken(announced + lengthSize - replyHead)
}

// readToken reads the body of an answer, which has a token, or null, and nothing else.
func (s *Stream) readToken(size int) ([]byte, error) {
	p := make([]byte, size)
	if _, err := io.ReadFull(s.buffered, p); err != nil {
		return nil, err
	}
	b := body{rest: p}
	n := int(b.number("token"))
	switch {
	case b.wrong != nil:
		return nil, Malformed{b.wrong}
	case n == -1 && len(b.rest) == 0:
		return nil, nil
	case n != len(b.rest):
		return nil, malformed("token: has the length %d in %d bytes", n, len(b.rest))
	}
	return b.rest, nil
}
