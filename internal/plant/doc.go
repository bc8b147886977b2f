// Package plant puts defects into copies of the library's sources, for tests that must
// find them. A [Defect] names what it breaks by function and by a small expression in it,
// the mark, so that a change of the lines around does not move it. A mark that is not
// found exactly once is an error.
//
// All defects go into one program. Each gets a copy of the body of its function, which
// runs in place of the body if the environment variable [Variable] names the defect. So a
// defect costs no build of its own, and a defect that no longer compiles is found with
// all others. The sources stay as they are: [Overlay] writes the copies into a directory,
// and go build -overlay takes them from there.
package plant
