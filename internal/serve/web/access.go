package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"
)

// An Access says who may see the pages.
type Access struct {
	Hosts  []string // what Host may be, without a port, next to the names of loopback
	Token  string   // what viewers must present; "": nothing
	Secure bool     // the pages are served over TLS
	Posts  bool     // next takes POST, too
}

// Guard returns a handler that lets through to next who may see the pages, and no request
// that the page of another origin has a browser send.
func Guard(a Access, next http.Handler) http.Handler { return newGate(a, next) }

// A gate lets in who may see the pages.
type gate struct {
	Access
	token  [sha256.Size]byte // the hash of Token
	cookie string            // what browsers get that have presented the token
	next   http.Handler
}

// cookieName is that of the cookie. EventSource sends no header of its own.
const cookieName = "zklock"

func newGate(a Access, next http.Handler) *gate {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(a.Token))
	return &gate{
		Access: a, token: sha256.Sum256([]byte(a.Token)),
		cookie: hex.EncodeToString(mac.Sum(nil)), next: next,
	}
}

// policy is strict: nothing but what this server has, and nobody may frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; " +
	"img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin") // with none, a button has no origin
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	switch {
	case !g.takes(r.Method):
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "these pages only show", http.StatusMethodNotAllowed)
	case !g.isOurs(r.Host):
		http.Error(w, "this is not the host of these pages; see zklock serve --host",
			http.StatusMisdirectedRequest)
	case g.isForeign(r):
		http.Error(w, "requests of other web pages are refused", http.StatusForbidden)
	case !g.admit(w, r):
		header.Set("WWW-Authenticate", `Basic realm="zklock: any name, and the token"`)
		http.Error(w, "present the token: as the password, or as a Bearer token",
			http.StatusUnauthorized)
	default:
		g.next.ServeHTTP(w, r)
	}
}

func (g *gate) takes(method string) bool {
	return method == http.MethodGet || method == http.MethodHead ||
		g.Posts && method == http.MethodPost
}

// isOurs tells whether a request was meant for this server: a name that resolves to it,
// but is another one's, is how web pages of strangers get in (DNS rebinding).
func (g *gate) isOurs(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	return host == "localhost" || net.ParseIP(host).IsLoopback() ||
		slices.Contains(g.Hosts, host)
}

// isForeign tells whether a page of another origin has sent the request. A link to these
// pages is fine, a button is not.
func (g *gate) isForeign(r *http.Request) bool {
	scheme := "http://"
	if g.Secure {
		scheme = "https://"
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != scheme+r.Host {
		return true
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Header.Get("Sec-Fetch-Mode") != "navigate" || r.Method == http.MethodPost
}

// admit tells whether a request has the token. A browser gets a cookie for it.
func (g *gate) admit(w http.ResponseWriter, r *http.Request) bool {
	if g.Token == "" {
		return true
	}
	if c, err := r.Cookie(cookieName); err == nil &&
		subtle.ConstantTimeCompare([]byte(c.Value), []byte(g.cookie)) == 1 {
		return true
	}
	token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !isBearer {
		_, token, _ = r.BasicAuth()
	}
	hash := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(hash[:], g.token[:]) != 1 {
		return false
	}
	if !isBearer {
		http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure needs TLS
			Name: cookieName, Value: g.cookie, Path: "/", HttpOnly: true,
			Secure: g.Secure, SameSite: http.SameSiteStrictMode,
		})
	}
	return true
}
