package digestmd5

import (
	"crypto/md5" //nolint:gosec // the mechanism's own
	"encoding/hex"
	"strings"
)

// A proof is what both sides know, when they are honest.
type proof struct {
	user, realm, password string
	nonce, clientNonce    string
	uri                   string
}

// firstUse is the count of uses of the nonce.
const firstUse = "00000001"

// The beginnings of what the two sides prove their knowledge over.
const (
	ofClient = "AUTHENTICATE:"
	ofServer = ":"
)

// of returns the proof of one side, in hexadecimal digits (RFC 2831, 2.1.2.1 and 2.1.3).
func (p proof) of(side string) string {
	secret := sum(legacy(p.user) + ":" + legacy(p.realm) + ":" + legacy(p.password))
	session := sum(secret + ":" + p.nonce + ":" + p.clientNonce)
	return digits(sum(strings.Join([]string{
		digits(session), p.nonce, firstUse, p.clientNonce, "auth",
		digits(sum(side + p.uri)),
	}, ":")))
}

func sum(s string) string {
	hash := md5.Sum([]byte(s)) //nolint:gosec // the mechanism's own
	return string(hash[:])
}

func digits(s string) string { return hex.EncodeToString([]byte(s)) }

// legacy is s in ISO 8859-1 where it can be written so: the mechanism hashes that, though
// it sends UTF-8.
func legacy(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r)) //nolint:gosec // it fits
	}
	return string(b)
}
