// Package hazards has only tests: of what went wrong in other lock libraries, in servers
// and in the client, and must not happen here. docs/hazards.md is their list. Each
// TestHazard is named after a row of that page, or after a group of rows, and a test here
// compares the page with all tests of the repository.
package hazards
