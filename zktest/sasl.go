package zktest

import (
	"crypto/rand"
	"maps"
	"strings"

	"github.com/zkrecipes/recipes/internal/digestmd5"
)

// WithSASLUsers makes the servers accept logins by SASL with DIGEST-MD5, of these users
// with these passwords. Use it to test a client with SASL. It stands for a JAAS
// configuration with org.apache.zookeeper.server.auth.DigestLoginModule, and for the
// scheme sasl in ACLs: a user is sasl:name. Without it, servers answer as real ones
// without SASL do, with a null token.
func WithSASLUsers(passwords map[string]string) Option {
	passwords = maps.Clone(passwords)
	return option(func(s *settings) { s.saslUsers = passwords })
}

// OpSASL is a message of a SASL exchange.
const OpSASL = Op(opSASL)

// A saslLogin is the exchange of one connection (ZooKeeperSaslServer).
type saslLogin struct {
	server *digestmd5.Server // nil before the first message
	done   bool
}

// saslLocked takes a message of an exchange. Like an auth packet it does not wait for the
// requests before it (processSasl).
func (c *conn) saslLocked(asked *call) {
	token, over, err := c.answerSASLLocked(asked.req.body.(saslRequest).token)
	if over {
		c.dropLocked()
		return
	}
	if !asked.lost {
		c.sendReplyLocked(asked, 0, err, saslReply{token})
	}
	if asked.lost || err != codeOK {
		c.hangUpLocked()
	}
}

// answerSASLLocked says what a message is answered, or that the connection is over
// without an answer.
func (c *conn) answerSASLLocked(message []byte) (token []byte, over bool, err code) {
	users, login := c.server.cluster.saslUsers, &c.sasl
	switch {
	case message == nil: // the server stumbles
		return nil, true, codeOK
	case users == nil:
		return nil, false, codeOK
	case login.done:
		return nil, false, codeAuthFailed
	case login.server == nil: // whatever the message is
		login.server = &digestmd5.Server{
			Realm: "zk-sasl-md5", URI: "zookeeper/zk-sasl-md5", Nonce: rand.Text(),
			Passwords: users,
		}
		return login.server.Challenge(), false, codeOK
	}
	user, token, why := login.server.Judge(message)
	if why != nil {
		return nil, false, codeAuthFailed
	}
	login.done = true
	c.identifyLocked(identity{"sasl", user})
	return token, false, codeOK
}

// validSASL says whether an id may stand in an ACL: with an @ it must be a name of
// Kerberos, service/host@REALM.
func validSASL(id string) bool {
	name, realm, has := strings.Cut(id, "@")
	return !has || strings.Count(name, "/") <= 1 && !strings.ContainsAny(realm, "@/")
}
