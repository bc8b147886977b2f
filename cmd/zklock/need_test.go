package main

import (
	"os"
	"os/exec"
	"testing"
)

// skip skips a test for want of something, and says how to get it. Where MUST is 1
// nothing may be missing: there it fails.
func skip(t *testing.T, how string) {
	t.Helper()
	if os.Getenv("MUST") == "1" {
		t.Fatal(how)
	}
	t.Skip(how)
}

// need skips a test that needs a program which is not here.
func need(t *testing.T, program, debian string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		skip(t, program+" is not installed: on Debian, as root, apt-get install "+debian)
	}
}
