// Zktest is a ZooKeeper for tests, in one small process without Java: one server or an
// ensemble, to which clients in any language connect, and which fails on demand.
//
//	zktest [flags]
//	go run github.com/zkrecipes/recipes/cmd/zktest@latest -listen 127.0.0.1:2181
//
// Once it takes clients it writes two lines to its standard output, the connect string,
// with addresses that a client can use, and the URL of its admin surface:
//
//	127.0.0.1:2181
//	http://127.0.0.1:40123
//
// Nothing is kept on disk: each start is a new, empty ZooKeeper. What it serves, and what
// not, is in the doc of package zktest.
//
// # Flags
//
//	-listen HOST:PORT[,HOST:PORT...]
//	                     where each server listens; with one address for an ensemble,
//	                     each further server listens on the port behind that of the one
//	                     before; port 0: on free ports (127.0.0.1:0)
//	-public              let -listen be :PORT or 0.0.0.0:PORT, where any machine can
//	                     connect: there are no secrets here, and no limits
//	-servers N           how many servers the ensemble has (as many as -listen)
//	-tick DURATION       the tickTime (2s)
//	-min-session DURATION, -max-session DURATION
//	                     between which session timeouts are granted (2 and 20 ticks)
//	-slow-commit DURATION
//	                     what passes until a write takes effect (0s)
//	-slow-close DURATION what passes until the znodes of an expired session go (0s)
//	-eager-acl           servers of an ensemble refuse by themselves what an ACL
//	                     forbids
//	-container-check DURATION
//	                     what passes between two looks for empty containers, and TTL
//	                     znodes past their time (1m0s); there are two in a tick at most
//	-shuffle             give children in an order by chance: a program that forgets to
//	                     sort them passes on sorted ones, and fails in production
//	-super USER:PASSWORD who, by the scheme digest, may do all in spite of any ACL
//	-reconfig            accept reconfig (reconfigEnabled): what clients see changes,
//	                     and the servers stay as they are
//	-read-only           a server of an ensemble that finds no leader answers reads
//	-sasl-user USER:PASSWORD
//	                     who may log in by SASL with DIGEST-MD5; once for each user
//	-tls-cert FILE, -tls-key FILE
//	                     the servers' certificate and its key, in PEM: they speak TLS,
//	                     and nothing else
//	-tls-ca FILE         the certificates of those who may sign the clients': a client
//	                     has to show one, and is x509:SUBJECT in ACLs
//	-seed N              what random delays and orders are drawn from (0)
//	-chroot PATH         make the znode, and write it behind the connect string
//	-admin HOST:PORT     where the admin surface listens, on a loopback address only;
//	                     empty: nowhere (127.0.0.1:0)
//	-with-parent         stop when the process that started it has ended, so that the
//	                     server does not outlive a script (not on Windows)
//	-eof                 stop at the end of the standard input; in a shell a job in the
//	                     background has none, which is refused
//	-version             print the version
//	-help                this text
//
// # The admin surface
//
// It is HTTP, with plain text either way: every language and every shell has a client for
// that, whoever starts the server and whoever disturbs it need not be one process, and a
// fault is in force when the answer is there. What a request has besides its path goes
// into the query or into a form.
//
//	curl $admin/sessions                      # 0x18d2f6a1c0b0001
//	curl -X POST $admin/sessions/0x18d2f6a1c0b0001/expire
//	curl -d by=500ms $admin/servers/2/lag
//	curl -d op=create $admin/network/lose-reply
//
// To look:
//
//	GET /connect         the connect string
//	GET /sessions        the ids of the sessions, a line each
//	GET /servers         number and address of each server, and which one leads
//	GET /znodes          the paths of all znodes
//	GET /watches         how many watches are set
//
// To disturb; SERVER is a number from 1, or "leader":
//
//	POST /sessions/ID/expire      end a session, as if its client had been silent
//	POST /servers/SERVER/stop     kill the server
//	POST /servers/SERVER/start    start it again
//	POST /servers/SERVER/freeze   stop its process: nothing is answered
//	POST /servers/SERVER/thaw     let it go on
//	POST /servers/SERVER/isolate  cut it off the other servers, not off its clients
//	POST /servers/SERVER/rejoin   end that
//	POST /servers/SERVER/lag      by=DURATION: so far is it behind its leader; 0s: not
//	POST /network/cut             break all connections and refuse new ones
//	POST /network/stall           direction=to-server, to-client or both: let nothing
//	                              through, and keep the connections
//	POST /network/heal            end cut and stall
//	POST /network/reset           break all connections once
//	POST /network/freeze          what servers see of stopped client processes
//	POST /network/thaw            end that
//	POST /network/delay           least=DURATION most=DURATION: of each packet, each way
//	POST /network/lose-request    op=OP: the next such request breaks its connection
//	POST /network/lose-reply      op=OP: so does the answer to one, done by then
//	POST /network/throttle        op=OP: the next such request is answered "throttled"
//	POST /network/hostile         reply=NAME: the answer to the next request that NAME
//	                              begins with is what no ZooKeeper sends; an unknown
//	                              NAME lists them all
//	POST /network/spare           take back what of these four has not hit yet
//	POST /sequence                path=PATH next=N: the next sequential child's number
//
// OP is any, create, create-container, delete, exists, get, set, get-acl, set-acl,
// children, sync, multi, auth, add-watch, check-watches, remove-watches, set-watches,
// ping or close. A status of 200 says that it is done; 400 that the request makes no
// sense, 404 that there is no such thing, 409 that there is no leader just now or that a
// server lags behind, each with a line that says what. Requests of web pages are refused.
//
// # Exit
//
// SIGINT and SIGTERM end it, with status 0. (A "go run" passes on the first, and not the
// second: start what go build made, or use -eof.) Otherwise the status is 64 where a flag
// makes no sense, 77 where a port may not be listened on, 69 where it is taken or cannot
// be had, each with one line on the standard error.
package main
