package interop_test

import (
	"os/exec"
	"sync"
	"testing"
)

// A jvm is a program in Java, with Curator's recipes.
type jvm = program

// startJVM starts a Java process with Curator.
func startJVM() (*jvm, error) {
	home, err := findJavaHome()
	if err != nil {
		return nil, err
	}
	// Quick to start and small, as the servers are.
	return startProgram("Java", exec.Command(home.java, "-Xmx256m", "-XX:+UseSerialGC",
		"-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
		home.classes+":"+home.classpath, "Peer"))
}

// shared is the process that the tests share, each with clients of its own.
var shared struct {
	once sync.Once
	jvm  *jvm
	err  error
}

// sharedJVM returns the process that the tests share. Nobody may kill it.
func sharedJVM(tb testing.TB) *jvm {
	tb.Helper()
	needsOthers(tb)
	shared.once.Do(func() { shared.jvm, shared.err = startJVM() })
	mustHave(tb, shared.err)
	return shared.jvm
}

// ownJVM starts a process for one test.
func ownJVM(tb testing.TB) *jvm {
	tb.Helper()
	needsOthers(tb)
	j, err := startJVM()
	mustHave(tb, err)
	tb.Cleanup(func() { _ = j.leave() }) // most likely it was killed
	return j
}

// leaveShared ends what sharedJVM has started.
func leaveShared() error {
	if shared.jvm == nil {
		return nil
	}
	return shared.jvm.leave()
}
