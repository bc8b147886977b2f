// Package kerberos logs clients of package recipes in by Kerberos: SASL with the
// mechanism GSSAPI, which ZooKeeper's servers have with Krb5LoginModule.
//
//	login, err := kerberos.FromKeytab("batch@EXAMPLE.COM", "/etc/batch.keytab")
//	…
//	client, err := recipes.Connect(ctx, "zk1.example.com:2181", 10*time.Second,
//		recipes.WithSASL(login))
//
// The id in ACLs is sasl:batch@EXAMPLE.COM, or without the realm or the host if the
// servers have kerberos.removeRealmFromPrincipal or kerberos.removeHostFromPrincipal.
// docs/appendix/kerberos-login.md has a login from an empty machine, docs/kerberos.md
// what can go wrong.
//
// # Names
//
// The server's principal is zookeeper/host, with the host as the connect string has it,
// in lower case. So connect by name, not by address. The realm is that of [domain_realm]
// in krb5.conf, else the client's. There is no reverse lookup, as with rdns = false.
//
// # Tickets
//
// Each handshake asks the KDC for a new ticket for the server, since the server's key may
// have been renewed. If the KDC does not answer within half a second, the last ticket is
// used while it is valid: a session survives an outage of the KDC. A login may be used by
// any number of clients.
//
// # Errors
//
// A rejection by the KDC or the server, a clock that is wrong, an expired ticket in a
// cache and a damaged file match zk.ErrAuthFailed: Connect returns them at once, and at a
// reconnect they are logged at Error. A KDC that does not answer is asked again at the
// next server. No error contains a key or a ticket.
//
// # Limits
//
// Only AES is supported (enctypes 17 to 20), and of krb5.conf what gokrb5 reads: no
// include, no default_ccache_name. Caches must be files: no KEYRING, KCM or DIR. A cache
// must belong to the user of this process, with mode 0600, also if that is root. A KDC's
// reply may have 1 MiB. A KDC may take five seconds to answer by UDP, and by TCP.
//
// # Dependencies
//
// The library itself must need nothing but go-zookeeper/zk, so this is a module of its
// own. Its direct dependencies:
//
//	github.com/zkrecipes/recipes    the interface that it implements
//	github.com/go-zookeeper/zk      ErrAuthFailed, which its errors match
//	github.com/jcmturner/gokrb5/v8  Kerberos in Go, without C and libkrb5: messages,
//	                                crypto, gssapi (tokens), keytab, credentials
//	                                (caches), config
//	github.com/stretchr/testify     in tests
//
// gokrb5 brings five modules for ASN.1, AES-CTS, RPC, DNS and UUIDs, four of them by its
// own author, and golang.org/x/crypto and x/net. Its packages client and spnego are not
// used: this package asks the KDC itself. Its last release is of February 2023. This
// package works around what was found in it: it allocates what anybody on the path of a
// KDC's reply announces, in four bytes; prints a keytab in an error, panics on damaged
// files and messages, starts a goroutine at each login that nobody can stop, reorders a
// shared configuration, picks the older of two keys of one second, and does not verify a
// server's reply.
package kerberos
