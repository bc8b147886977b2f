// Package lock shows what a program sees of the locks: what holds for every kind, what
// holds for one, what they tell in errors, events and logs, and what options and owners
// do. It consists of tests.
package lock
