package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/serve/text"
)

// The exit codes that are zklock's own: sysexits(3), and a shell's for a command that
// cannot be started.
const (
	exitUsage         = 64
	exitUnavailable   = 69
	exitSoftware      = 70
	exitNotAcquired   = 75
	exitLost          = 76
	exitNoPermission  = 77
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // and the signal's number
)

// exitCodes is what the help of a command says of them.
const exitCodes = `The exit codes are in "zklock --help".`

// exitTable is the table in the help of zklock and in the man page.
const exitTable = `Exit codes:
  CMD's        as CMD exited; 128+n if signal n ended it
  1            doctor has found something; the znode is still there (revoke, evict);
               a promise was not kept (prove)
  3            prove cannot decide
  64           bad usage: a flag, a path, a server, a setting that does not fit
  69           ZooKeeper cannot be reached, or did not respond in time
  70           any other error
  75           the lock was not acquired (run -n, run -w; another code with -E)
  76           the lock was lost, or --max-hold has ended, and CMD was ended for it
  77           no permission, or the credentials were rejected
  126, 127     CMD cannot be executed, CMD was not found
  128+n        signal n ended zklock while no CMD ran`

// An exitError ends zklock with a code.
type exitError struct {
	code  int
	err   error          // nil: there is nothing to say
	raise syscall.Signal // 0, or what zklock dies of
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit is an error of a code; what it wraps with %w keeps its identity.
func exit(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

func usage(format string, args ...any) error {
	return exit(exitUsage, format, args...)
}

// exitWith ends zklock without a word.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}

// codeOf is the exit code of an error of the library.
func codeOf(err error) int {
	if told := (&exitError{}); errors.As(err, &told) {
		return told.code
	}
	for _, entry := range []struct {
		code   int
		causes []error
	}{
		{exitLost, []error{recipes.ErrLockLost}},
		{exitNoPermission, []error{zk.ErrNoAuth, zk.ErrAuthFailed, os.ErrPermission}},
		{exitUnavailable, []error{
			recipes.ErrUnavailable, context.DeadlineExceeded, zk.ErrNoServer,
			zk.ErrConnectionClosed, zk.ErrSessionExpired,
		}},
	} {
		for _, cause := range entry.causes {
			if errors.Is(err, cause) {
				return entry.code
			}
		}
	}
	return exitSoftware
}

// report says on one line what went wrong, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	told := &exitError{err: err}
	if !errors.As(err, &told) {
		told.code = codeOf(err)
	}
	if told.err != nil {
		say(stderr, err)
	}
	if told.raise != 0 {
		die(told.raise)
	}
	return told.code
}

// say writes a line, which may name what somebody else has named. Without the library's
// name: who reads it has typed zklock.
func say(stderr io.Writer, what any) {
	line := text.Printable(strings.Join(strings.Fields(fmt.Sprint(what)), " "))
	line = strings.ReplaceAll(line, "recipes: ", "")
	_, _ = fmt.Fprintf(stderr, "zklock: %s\n", line) // nobody is left to tell
}
