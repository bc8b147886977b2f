// Zktest is a ZooKeeper for tests, in one small process without Java: one server or an
// ensemble. Clients in any language can connect to it, and it fails on demand.
//
//	zktest [flags]
//
// Once it accepts clients, it writes two lines to its standard output: the connect
// string, with addresses that a client can use, and the URL of its admin surface:
//
//	127.0.0.1:2181
//	http://127.0.0.1:40123
//
// Nothing is kept on disk: each start is a new, empty ZooKeeper. The doc of package
// zktest says what it serves, and what it does not.
//
// # Flags
//
//	-listen HOST:PORT[,HOST:PORT...]
//	                     where each server listens; with one address for an ensemble,
//	                     each further server listens on the next port; port 0: on free
//	                     ports (127.0.0.1:0)
//	-public              allow :PORT or 0.0.0.0:PORT in -listen, where any machine can
//	                     connect: there are no secrets here, and no limits
//	-servers N           how many servers the ensemble has (as many as -listen)
//	-tick DURATION       the tickTime (2s)
//	-min-session DURATION, -max-session DURATION
//	                     the shortest and the longest session timeout that is granted
//	                     (2 and 20 ticks)
//	-slow-commit DURATION
//	                     the time from a write until it has an effect (0s)
//	-slow-close DURATION how long the znodes of an expired session remain (0s)
//	-eager-acl           each server of an ensemble rejects by itself what an ACL
//	                     forbids, without its leader
//	-container-check DURATION
//	                     the time between two checks for empty containers and expired
//	                     TTL znodes (1m0s); at most two checks in a tick
//	-shuffle             list children in random order, so that a program that forgets
//	                     to sort them fails here and not in production
//	-super USER:PASSWORD who may do all in spite of any ACL, by the scheme digest
//	-reconfig            accept reconfig (reconfigEnabled): what clients see changes,
//	                     and the servers stay as they are
//	-read-only           a server of an ensemble that finds no leader answers reads
//	-keeper              behave as ClickHouse Keeper: no session is resumed, and session
//	                     timeouts are between 10s and 100s unless flags say otherwise
//	-keeper-unknown OP[,OP...]
//	                     hang up at these requests, as an older Keeper does: before
//	                     December 2025 at set-watches, before July 2026 at
//	                     create-container
//	-sasl-user USER:PASSWORD
//	                     who may log in by SASL with DIGEST-MD5; once for each user
//	-tls-cert FILE, -tls-key FILE
//	                     the servers' certificate and its key, in PEM: they speak TLS,
//	                     and nothing else
//	-tls-ca FILE         the CA certificates for the clients: a client has to show one,
//	                     and is x509:SUBJECT in ACLs
//	-seed N              the seed of random delays and orders (0)
//	-chroot PATH         create the znode, and append it to the connect string
//	-admin HOST:PORT     where the admin surface listens, on a loopback address only;
//	                     empty: nowhere (127.0.0.1:0)
//	-with-parent         stop when the process that started it has ended, so that the
//	                     server does not outlive a script (not on Windows)
//	-eof                 stop at the end of the standard input; it does not start
//	                     without one, as in a background job of a shell
//	-version             print the version
//	-help                this text
//
// # The admin surface
//
// It is HTTP with plain text, for which every language and every shell has a client. A
// fault is in force once the response is there. Parameters go into the query or a form.
//
//	curl $admin/sessions                      # 0x18d2f6a1c0b0001
//	curl -X POST $admin/sessions/0x18d2f6a1c0b0001/expire
//	curl -d by=500ms $admin/servers/2/lag
//	curl -d op=create $admin/network/lose-reply
//
// A browser gets the page of zklock serve at the same address, with buttons for faults:
// the locks inside, whoever created them. It begins with its first viewer. Its session
// and its watches are the page's own: no network fault concerns them.
//
// To look:
//
//	GET /connect         the connect string
//	GET /sessions        the ids of the sessions, a line each, without the page's own
//	GET /servers         number and address of each server, and which one leads
//	GET /znodes          the paths of all znodes
//	GET /watches         how many watches are set
//
// To disturb; SERVER is a number from 1, or "leader":
//
//	POST /sessions/ID/expire      end a session, as if its client had been silent
//	POST /servers/SERVER/stop     kill the server: its port rejects connections
//	POST /servers/SERVER/start    start it again
//	POST /servers/SERVER/freeze   suspend its process: it answers nothing
//	POST /servers/SERVER/thaw     resume it
//	POST /servers/SERVER/isolate  cut it off from the other servers, not from clients
//	POST /servers/SERVER/rejoin   end that
//	POST /servers/SERVER/lag      by=DURATION: how far it is behind its leader; 0s: not
//	POST /network/cut             break all connections, and reject new ones
//	POST /network/stall           direction=to-server, to-client or both: deliver
//	                              nothing, and keep the connections
//	POST /network/heal            end cut and stall
//	POST /network/reset           break all connections once
//	POST /network/freeze          suspend the client processes, as the servers see it
//	POST /network/thaw            end that
//	POST /network/delay           least=DURATION most=DURATION: of each packet, each way
//	POST /network/lose-request    op=OP: break the connection at the next such request,
//	                              before it is done
//	POST /network/lose-reply      op=OP: the same, once the request is done
//	POST /network/throttle        op=OP: answer the next such request with "throttled"
//	POST /network/hostile         reply=NAME: answer the next request that NAME begins
//	                              with as no ZooKeeper does; an unknown NAME lists all
//	POST /network/spare           cancel what of these four has not happened yet
//	POST /sequence                path=PATH next=N: the next sequential child's number
//
// OP is any, create, create-container, delete, exists, get, set, get-acl, set-acl,
// children, sync, multi, auth, add-watch, check-watches, remove-watches, set-watches,
// ping or close. Status 200: it is done. 400: the request makes no sense. 404: there is
// no such thing. 409: there is no leader just now, or a server lags behind. Each error
// has a line that says more. Requests of other sites'
// pages are rejected.
//
// # Exit
//
// SIGINT and SIGTERM end it, with status 0. ("go run" passes on SIGINT alone: start what
// go build made, or use -eof.) Otherwise there is one line on the standard error, and the
// status is 64 if a flag makes no sense, 77 if listening on a port is not permitted, and
// 69 if a port is in use or not available.
package main
