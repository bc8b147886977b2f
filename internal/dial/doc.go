// Package dial opens the connections of one zk.Conn, reads the handshake of each as it
// passes, and has each reply that follows checked by package wire, which knows the bytes.
// It knows nothing of the Client that it dials for, or of locks.
//
// zk.Connect can be given a zk.HostProvider, which decides what server is next, and a
// zk.Dialer, which connects to it. A [Dialer] has both. They do what zk v1.0.4 leaves
// undone:
//
//   - If a server accepts connections and says nothing, the client leaves it in time for
//     another server to resume the session. zk waits for almost seven session timeouts,
//     or without end. Servers that are slow, all of them, get more time from round to
//     round.
//   - A program that answers a handshake but is no ZooKeeper, or a ZooKeeper that turns
//     clients away, gives no session. zk believes the answer, and allocates as much as it
//     announces.
//   - A reply that no ZooKeeper sends cuts the connection, and so does one to no request
//     ([Dialer.TellCut]). One that is longer than a limit is skipped: its request fails.
//   - Before anybody learns of the session, the granted session timeout is known, and
//     when the handshake began. zk reports neither.
//   - A connection is authenticated by SASL before zk has it ([Config].SASL), and so
//     before any request. zk does not know SASL.
//   - If the ensemble has come back empty, or with an older history, the client gets a
//     new session (handshake.go). zk forever asks to resume the one that it had.
//   - A request that is rejected for lack of authentication fails with an error that zk
//     knows, and the log says what is missing.
//   - The zxid of a create is known ([Dialer.CreatedAt]). zk keeps it to itself.
//   - Permanent failures, such as an invalid certificate, are reported to the caller of
//     Connect ([Config].GiveUp). zk dials on.
//   - The client can be closed at any time, within moments. zk waits for a frozen server,
//     and for a dial. (This package, too, waits for a zk.Dialer of the user's.)
//
// # A connection
//
//	Next ─────► Dial ─────► handshake ─────► session ─────► Next, when it breaks
//	  │           │             │            │
//	  │           │             │            └ wire.Stream: what was asked, each reply;
//	  │           │             │              creates: when znodes were created
//	  │           │             └ handshake.go: a conn bounds it and reads the answer;
//	  │           │               sasl.go: it authenticates. It may ask for a new
//	  │           │               session instead (compare)
//	  │           └ dialer.go: hosts (hosts.go) looks the name up and connects,
//	  │             or the user's zk.Dialer does; then TLS
//	  └ rounds.go: rounds asks a host provider, the user's or shuffled (servers.go)
//
// When a host provider says that a round is over, zk fails the calls that wait for a
// connection, and pauses for a second before it dials. An attempt that fails leads back
// to Next; attempts.go remembers why, for [Dialer.Explain].
//
// # Goroutines
//
// zk has one goroutine that connects. It alone calls Next, Dial, and the methods of a
// conn up to the end of the handshake, except for Close: so neither a host provider nor a
// conn needs a mutex. It then starts two that write to the conn and read from it, and
// goes on when both have ended.
//
// The Client calls [Dialer.HangUp], [Dialer.Pausing], [Dialer.LastHandshake],
// [Dialer.CreatedAt], [Dialer.TellCut] and [Dialer.Explain] from any goroutine.
//
// The package has goroutines of its own only for calls that may ignore a context: [New]
// for a host provider's Init, hosts for each lookup, a conn for each step of a mechanism
// of SASL; and for the user's code (package usercode), which is waited for. Each ends
// with its call; nobody else waits for it once the caller has left.
//
// There are five mutexes, of Dialer, rounds, attempts, hosts and creates, and one in
// package wire. None is held during a call to anything else, nor together with another.
//
// # Words
//
//	server     "host:port", as the connect string or a host provider has it
//	attempt    one Dial, and the handshake after it
//	round      an attempt at each server
//	pause      the second between two rounds, in which zk notices that it was closed
//	handshake  TLS's, then ZooKeeper's: the client's request and the server's answer;
//	           and SASL's exchange
//	exchange   the messages of SASL, from the client's first to the last answer
//	refusal    a failure of an attempt that the next will not avoid
//	hang up    cut the connection, and let no other be opened
package dial
