// Package api holds what the public packages export to what the files of test/api record.
// It consists of tests. A line there is one thing that a caller's code can depend on: as
// long as all lines are true, that code compiles.
package api
