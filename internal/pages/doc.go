// Package pages holds the pages of the repository, README.md and what is in docs, to what
// they say: links lead somewhere, lines fit a terminal, and every block of Go compiles
// against the library as it is. It consists of tests.
//
// A block that begins with a package clause is a program. Any other stands in a harness,
// a file of testdata that is named in a comment of the page right above the block, which
// a reader does not see:
//
//	<!-- go: do -->
//
// puts it at the line "//block" of testdata/do.txt. What a page must show and what only
// makes it compile stay apart so, and a page cannot show what does not compile.
package pages
