// Package hold shows what a program sees of a hold: when it is lost and when it is not,
// what its transactions do, and how it is released. It consists of tests.
package hold
