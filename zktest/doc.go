// Package zktest is an in-process ZooKeeper for tests. It speaks the wire protocol, so
// that any client of the operations below can use it, and it fails on demand.
//
//	cluster := zktest.Start(t)
//	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second)
//
// In a testing/synctest bubble, where hours of session timeouts pass in milliseconds,
// there is no network. There a client connects through a pipe, by names that need no
// lookup:
//
//	conn, _, err := zk.Connect(cluster.Names(), 4*time.Second,
//		zk.WithDialer(cluster.Dial), zk.WithHostProvider(cluster.HostProvider()))
//
// # What it serves
//
// Connect with negotiation of the session timeout, reconnect and expiry; create in all
// modes, create2, delete, exists, get and set data, both kinds of get children, get and
// set ACL, sync, check, multi, multi read, auth, persistent and recursive watches, check
// and remove watches, set watches in both forms, get ephemerals, get all children number,
// who am I, ping, close; SASL, see WithSASLUsers; reconfig, see WithReconfig; TLS, see
// WithTLS. ACL schemes: world, digest, auth, ip, sasl, x509; a super user, see
// WithSuperUser. Quotas are accounted for and, as by default, not enforced. Answers,
// errors, stats, zxids, events and the sequence counter with its limit are those of
// ZooKeeper 3.8 with its default settings, except that TTL znodes are enabled; the
// package's tests compare both, request by request. If other settings matter to clients
// there are options: WithMinSessionTimeout, WithMaxSession, WithEagerACLCheck,
// WithContainerCheck, WithReadOnlyMode, WithShuffle.
//
// # The ensemble
//
// With WithServers it is an ensemble: one committed log, and servers each at its own
// position in it. A server that lags behind answers reads from the past; sync makes it
// catch up; it rejects a client that has seen more. A request that was in progress
// through a server when its session moved to another one is rejected. A follower reports
// to the leader which sessions it has heard from only when the leader pings it: every
// half tick or, with WithSeed, up to a twentieth of a tick later. A server that is cut
// off from the others goes on answering reads for five ticks. The loss of the leader
// costs all clients their connections, and all sessions get their whole timeout again.
//
// # Malice
//
// Link.Hostile sends what no ZooKeeper does instead of an answer, to test that a client
// survives it; HostileReplies are replies that clients fail on. A Cluster itself closes
// the connection of a client that announces a packet of a MiB or more, as a real server
// does by default (jute.maxbuffer), and answers or drops what it cannot decode. It does
// not bound what a client requests without reading the answers: it is for tests, and
// untrusted clients must not reach it.
//
// # Limits
//
// Nothing is persisted. The log is forgotten once all servers have it; a server that
// lacks more than 500 transactions takes a snapshot. Four-letter words answer in the
// layout of 3.8, mntr with the keys that have a meaning here; those that reset something
// do not. There is no observer, and no throttling except by Link.Throttle. A network
// keeps the order of packets, as TCP does. Elections take a fixed time, and there are
// never two leaders at once, as a real ensemble has for a moment. Requests are judged one
// at a time. So the outcome of several requests in flight together can differ from a real
// server's near the sequence counter's limit, and after the end of a session: a real
// server may reject requests that are not answered here.
//
// # Goroutines
//
// Each connection has two goroutines, one that reads and one that writes, and each
// address of Cluster.Addrs one that accepts; Cluster.Close waits for them. Everything
// else happens in timers. One mutex guards the whole Cluster. It is not held while a
// connection is read or written, so every exported method may be called at any time, from
// any goroutine.
package zktest
