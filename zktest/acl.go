package zktest

import (
	"cmp"
	"crypto/sha1" //nolint:gosec // the scheme digest's own
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// superUser is the identity that no ACL stops.
var superUser = identity{scheme: "super"}

// authenticate gives the identities that an auth packet proves, none for what is answered
// codeAuthFailed, after which the server closes the connection. Address is the client's,
// and an identity of scheme ip that every connection has from the start; super is the
// super user with the password, "" if there is none.
func authenticate(r authRequest, address, super string) []identity {
	switch {
	case r.scheme == "digest" && r.auth != nil:
		user, _, _ := strings.Cut(string(r.auth), ":")
		sum := sha1.Sum(r.auth) //nolint:gosec // the scheme digest's own
		proved := []identity{{
			"digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:]),
		}}
		if super != "" && super == string(r.auth) {
			proved = append(proved, superUser)
		}
		return proved
	case r.scheme == "ip":
		return []identity{{"ip", address}}
	default:
		return nil
	}
}

// sortIdentities puts a client's identities in the order in which a real server has them,
// and stores them for scheme auth: that of a ConcurrentHashMap.
func sortIdentities(who []identity) {
	const leastBins = 16
	bins := uint32(leastBins)
	for uint32(len(who)) >= bins/4*3 {
		bins *= 2
	}
	bin := func(id identity) uint32 {
		hash := id.hash()
		return (hash ^ hash>>16) % bins
	}
	slices.SortStableFunc(who, func(a, b identity) int {
		return cmp.Compare(bin(a), bin(b))
	})
}

// hash is the hashCode of a real server's Id.
func (id identity) hash() uint32 {
	return 37*(37*17+javaHash(id.scheme)) + javaHash(id.id)
}

// javaHash is the hashCode of a String.
func javaHash(text string) (hash uint32) {
	for _, unit := range utf16.Encode([]rune(text)) {
		hash = 31*hash + uint32(unit)
	}
	return hash
}

// user is what a server calls an identity in its answer to whoAmI.
func (id identity) user() string {
	if id.scheme != "digest" {
		return id.id
	}
	user, _, _ := strings.Cut(id.id, ":")
	return user
}

// checkACL asks for any one of perms. An empty ACL permits everything.
func checkACL(acls []acl, perms int32, who []identity) code {
	if len(acls) == 0 || slices.Contains(who, superUser) {
		return codeOK
	}
	for _, a := range acls {
		if a.perms&perms != 0 && a.grants(who) {
			return codeOK
		}
	}
	return codeNoAuth
}

func (a acl) grants(who []identity) bool {
	if a.identity == (identity{"world", "anyone"}) {
		return true
	}
	for _, id := range who {
		switch {
		case id.scheme != a.scheme:
		case a.scheme == "digest" && id.id == a.id, a.scheme == "ip" &&
			matchesIP(id.id, a.id), a.scheme == "sasl" && (id.id == a.id ||
			id.id == "super"), a.scheme == "x509" && id.id == a.id:
			return true
		}
	}
	return false
}

// fixupACL makes what a client asks for into what is stored: without doubles, and with
// the client's identities for scheme auth.
func (t *tree) fixupACL(asked []acl, who []identity) ([]acl, code) {
	var unique, fixed []acl
	for _, a := range asked {
		if !slices.Contains(unique, a) {
			unique = append(unique, a)
		}
	}
	for _, a := range unique {
		switch {
		case a.scheme == "auth":
			before := len(fixed)
			for _, id := range who {
				// An address is no proof of who it is, and the super user is in no ACL.
				if id.scheme != "ip" && id != superUser {
					fixed = append(fixed, acl{a.perms, id})
				}
			}
			if len(fixed) == before {
				return nil, codeInvalidACL
			}
		case a.identity == (identity{"world", "anyone"}), a.scheme == "digest" &&
			validDigest(a.id), a.scheme == "ip" && validIP(a.id),
			a.scheme == "sasl" && t.sasl && validSASL(a.id),
			a.scheme == "x509" && t.x509 && validName(a.id):
			fixed = append(fixed, a)
		default:
			return nil, codeInvalidACL
		}
	}
	if len(fixed) == 0 {
		return nil, codeInvalidACL
	}
	return fixed, codeOK
}

// validDigest wants two parts. Colons at the end do not count: Java's split drops what is
// empty there.
func validDigest(id string) bool {
	return strings.Count(strings.TrimRight(id, ":"), ":") == 1
}

// validName wants what a certificate could have for the name of its subject, or nothing.
func validName(id string) bool {
	if id == "" {
		return true
	}
	for part := range strings.SplitSeq(id, ",") {
		if key, _, ok := strings.Cut(part, "="); !ok || strings.TrimSpace(key) == "" {
			return false
		}
	}
	return true
}

func validIP(expr string) bool {
	_, _, ok := parseIP(expr)
	return ok
}

// parseIP takes an IPv4 address with or without a number of bits, the only ones that the
// server knows.
func parseIP(expr string) (address uint32, bits int, ok bool) {
	text, mask, masked := strings.Cut(expr, "/")
	parts := strings.Split(text, ".")
	if len(parts) != 4 {
		return 0, 0, false
	}
	for _, part := range parts {
		v, err := strconv.Atoi(part)
		if err != nil || v < 0 || v > 255 {
			return 0, 0, false
		}
		address = address<<8 | uint32(v)
	}
	if !masked {
		return address, 32, true
	}
	bits, err := strconv.Atoi(mask)
	return address, bits, err == nil && bits >= 0 && bits <= 32
}

func matchesIP(address, expr string) bool {
	network, bits, ok := parseIP(expr)
	if !ok {
		return false
	}
	client, _, ok := parseIP(address)
	return ok && (network^client)>>(32-bits) == 0
}
