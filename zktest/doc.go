// Package zktest is an in-process ZooKeeper for tests: it speaks the wire protocol, so
// that any client of the operations below can use it, and it fails on demand.
//
//	cluster := zktest.Start(t)
//	conn, _, err := zk.Connect(cluster.Addrs(), 4*time.Second)
//
// In a testing/synctest bubble, where hours of session timeouts pass in milliseconds,
// there is no network. There a client connects through a pipe, by names that nobody has
// to look up:
//
//	conn, _, err := zk.Connect(cluster.Names(), 4*time.Second,
//		zk.WithDialer(cluster.Dial), zk.WithHostProvider(cluster.HostProvider()))
//
// # What it serves
//
// Connect with negotiation of the session timeout, reconnect and expiry; create in all
// modes, create2, delete, exists, get and set data, both kinds of get children, get and
// set ACL, sync, check, multi, multi read, auth, persistent and recursive watches, check
// and remove watches, set watches in both forms, ping, close. ACL schemes: world, digest,
// auth, ip. Answers, errors, stats, zxids, events and the sequence counter with its limit
// are those of ZooKeeper 3.8 with its default settings, but that TTL znodes are enabled;
// the package's tests compare both, request by request. Where other settings matter to
// clients there are options: [WithMinSessionTimeout], [WithMaxSession],
// [WithEagerACLCheck], [WithContainerCheck].
//
// # The ensemble
//
// With [WithServers] it is an ensemble: one committed log, and servers each at its own
// position in it. A server that lags behind answers reads from the past; sync catches it
// up; it refuses a client that has seen more. A request that was under way through a
// server when its session moved to another one is refused. A follower tells the leader
// which sessions it has heard from only when that pings it, every half tick or, with
// [WithSeed], up to a twentieth of a tick later, and a server cut off from the others
// goes on to answer reads for five ticks. The loss of the leader costs all clients their
// connections and gives all sessions their whole timeout anew.
//
// # Malice
//
// [Link.Hostile] sends what no ZooKeeper does in the place of an answer, to see that a
// client survives it; [HostileReplies] are those that clients fail on. A Cluster itself
// hangs up on a client that announces a packet of a MiB or more, as a real server does
// by default (jute.maxbuffer), and answers or drops what it cannot decode. It does not
// bound what a client asks without reading the answers: it is for tests, and not to be
// reached by strangers.
//
// # Limits
//
// Nothing is persisted, and the log grows for as long as the Cluster lives. Not served,
// but answered as a server that does not know them: reconfig, SASL, who am I, and what
// lists ephemerals or counts children. Of the four-letter words only ruok, srvr, conf,
// wchs and wchp. No TLS, no observers, no quotas, no throttling but by [Link.Throttle]. A
// network keeps the order of packets, as TCP does. Elections take a fixed time, and there
// are never two leaders at once, as in a real ensemble for a moment. Requests are judged
// one at a time, so that what a real server does to several that are in flight together
// can differ near the sequence counter's limit, and behind the end of a session, where it
// may refuse what is not answered here.
//
// # Goroutines
//
// Each connection has two goroutines, one that reads and one that writes, and each
// address of [Cluster.Addrs] one that accepts; [Cluster.Close] waits for them. Everything
// else happens in timers. One mutex guards the whole Cluster. It is not held while a
// connection is read or written, so every exported method may be called at any time, from
// any goroutine.
package zktest
