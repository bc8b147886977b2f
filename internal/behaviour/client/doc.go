// Package client shows what a program sees of its connections: a Client from Connect to
// Close with its chroot and its events, a connection of the user's own, and paths. It
// consists of tests.
package client
