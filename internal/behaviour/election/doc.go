// Package election shows what a program sees of elections, of a queue that it looks at
// from outside, and of revocation. It consists of tests.
package election
