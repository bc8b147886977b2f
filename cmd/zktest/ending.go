package main

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// watch calls stop when what the flags name has ended.
func (f flags) watch(stop func(), stdin io.Reader) error {
	switch {
	case f.eof && isNull(stdin):
		return usageError{errors.New("-eof: the standard input is " + os.DevNull +
			", as that of a job in the background of a script is; want -with-parent")}
	case f.withParent && runtime.GOOS == "windows":
		return usageError{errors.New("-with-parent: not on Windows; want -eof")}
	}
	if f.eof {
		go func() { // ends with the process at the latest
			_, _ = io.Copy(io.Discard, stdin) // an error is an end, too
			stop()
		}()
	}
	if f.withParent {
		parent := os.Getppid()
		go func() { // likewise
			for os.Getppid() == parent {
				time.Sleep(100 * time.Millisecond) // nothing tells of it on all systems
			}
			stop()
		}()
	}
	return nil
}

// isNull says whether a stream ends before anybody could hold its other end.
func isNull(r io.Reader) bool {
	file, ok := r.(*os.File)
	if !ok {
		return false
	}
	given, err := file.Stat()
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(given, null)
}

// version is that of the module, as go install has it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
