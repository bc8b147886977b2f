// Package seqname reads the names of ephemeral sequential znodes, and orders them: who
// stands in a queue, and where. A [Name] is a value. The package has no state, goroutine
// or mutex, and sends no requests.
//
// # Words
//
//   - kind: the recipe's part of a name. number, Seq: what the server appended.
//   - spread: how far apart the numbers of a queue are. From 2^30 on its order is not
//     certain.
package seqname
