// Package wire knows the bytes that go-zookeeper/zk and a server exchange on one
// connection, and what a server may say. It dials nothing and closes nothing.
//
// An [Answer] is what the server says to the handshake. A [Stream] is what follows: it
// records zk's requests, and checks each reply by the request that it answers. A
// reply that no ZooKeeper sends is [Malformed], and so is one to no request: nothing is
// read after it. One that is longer than a limit is skipped, and zk gets an error for it.
// zk v1.0.4 allocates what a length or a count announces, panics if the results of a
// multi end early, and reads what is missing from the previous reply.
//
// # A connection
//
//	ReadAnswer ──► Answer.Session ──► AskSASL, if at all ──► Read, and Sending concurrently
//
// A Stream is between two replies (left is 0), within one (left is what must be read
// next; instead has it, if the reply was skipped), or broken: then each Read returns the
// same error.
//
// # Goroutines
//
// The package starts none. One goroutine calls ReadAnswer, then AskSASL, then Read.
// Another calls Sending before it sends a request. The requests that are not answered are
// what the two share, under the only mutex here, which is held during no call. The
// methods of a Listener are called by the one that reads.
//
// # Words
//
//   - answer: what a server says to a handshake, or to a message of SASL.
//   - reply: what it says to a request; also a watch event, or the answer to a ping.
//   - head: of a packet, the parts that each has. body: what follows.
//   - malformed: of a reply, that no ZooKeeper sends it.
//   - skipped: of a reply, that it is too long, and was read past.
package wire
