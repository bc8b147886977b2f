// Package hazards has only tests: of what went wrong in other lock libraries, in servers
// and in the client, and must not happen here. docs/appendix/hazards.md is their list.
// Each TestHazard is named after an item of that page, or after a group of items, and a test
// here compares the page with all tests of the repository.
//
// A file is about what befalls a lock: while it is created, while it waits, while it is
// held, and so on. A hazard of one recipe alone stands in that recipe's test file at the
// root.
package hazards
