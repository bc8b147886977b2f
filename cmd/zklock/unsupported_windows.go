package main

import _ "embed"

// The build ends with the next line, in which this is said.
//
//go:embed "zklock needs the signals and process groups of Unix, not of Windows"
var _ string
