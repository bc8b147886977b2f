// Package pages tests the pages of the repository, README.md and those in docs: links
// lead somewhere, lines fit a terminal, no page has too many words, the words are plain
// English, figures and messages are those of bench/RESULTS.md and of the sources, every
// block of Go compiles against the library as it is, and runs, and the packages import
// what the tables of CONTRIBUTING.md say.
//
// A comment right above a block, which readers do not see, names what runs it:
//
//	<!-- go: mutex -->
//
// A block that begins with a package clause is a program, and has to print what is in
// testdata/mutex.txt. Any other is put at the line "//pages:block" of testdata/mutex.go,
// its harness, whose function Run calls it and looks at what has happened. What a page
// must show and what only makes it run stay apart so, and a page cannot show what does
// not work. If the comment names a file, such as "example/main.go", the block is that
// file of another module, and a test of that module runs it.
//
// That a harness runs its block is seen from the coverage of the block: each of its
// statements must have been reached, but for those that only pass an error on. So a
// branch that a page shows is one that its harness takes.
package pages
