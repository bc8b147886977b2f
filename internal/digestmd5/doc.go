// Package digestmd5 is the SASL mechanism DIGEST-MD5 (RFC 2831), as far as ZooKeeper has
// it: algorithm md5-sess, and no protection of what follows (qop "auth"). It knows its
// messages, and nothing of connections, of ZooKeeper's requests, or of who asks.
//
// # An exchange
//
//	client                     server
//	   ◄───── Server.Challenge ──── realm, nonce
//	Client.Answer ─────────────►    user, client nonce, proof of the password
//	   ◄───── Server.Judge ──────── rspauth: the server's proof of the same password
//	Client.Confirm
//
// Neither side sends the password. But a hostile server, or anyone who listens, can find
// out a password that can be guessed: MD5 is fast. So use TLS below it.
//
// # Files
//
// fields.go is the syntax of all four messages, proof.go their arithmetic; client.go and
// server.go are the two sides. All are pure values, for one goroutine at a time.
package digestmd5
