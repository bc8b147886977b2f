// Package faults makes faults on the client's side of an ensemble: lines that are cut,
// stalled, delayed and reset, drawn from a seed one after the other. The chaos here uses
// it, and so does "zklock prove".
//
// A [Line] is a proxy in front of one port of a server: a toxiproxy, with a toxic of our
// own. It passes bytes on and looks at none of them, so that TLS goes through it as it
// is. A [Hand] makes one [Fault] at a time; several hands make several at once.
package faults
