package interop_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// workDir has what Java was compiled to and what it says; it is gone after the run. Set
// by TestMain.
var workDir string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) (code int) {
	var err error
	if workDir, err = os.MkdirTemp("", "interop-"); err == nil {
		code = zkserver.Main(m)
		err = errors.Join(leaveShared(), os.RemoveAll(workDir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// needsOthers is for each test of this package: it has other clients on its other side,
// which are processes of their own and take real time.
func needsOthers(tb testing.TB) {
	tb.Helper()
	zkserver.Real(tb, "the servers that others' clients know")
}

// serversOf is the connect string of the servers that the tests share.
func serversOf(tb testing.TB) string {
	tb.Helper()
	needsOthers(tb)
	return zkserver.Shared(tb).Connect()
}

// A javaHome is what Java processes are made of.
type javaHome struct {
	java      string
	classpath string // of Curator
	classes   string // the directory of what was compiled
}

var errNoCurator = errors.New("interop: no Curator to be had: install a JDK of version " +
	"17 or later, and Curator (Debian: apt-get install default-jdk-headless " +
	"libcurator-recipes-java; elsewhere set CURATOR_CLASSPATH to the jars of " +
	"curator-recipes and all that it needs)")

// findJavaHome finds what there is and compiles the Java program, once.
var findJavaHome = sync.OnceValues(func() (h javaHome, err error) {
	if h.classpath, err = findCurator(); err != nil {
		return h, errors.Join(errNoCurator, err)
	}
	javac, err := findJava("javac")
	if err != nil {
		return h, errors.Join(errNoCurator, err)
	}
	if h.java, err = findJava("java"); err != nil {
		return h, errors.Join(errNoCurator, err)
	}
	sources, err := filepath.Glob("java/*.java")
	if err != nil {
		return h, err
	}
	h.classes = filepath.Join(workDir, "classes")
	out, err := exec.Command(
		javac, append([]string{"-d", h.classes, "-cp", h.classpath}, sources...)...,
	).CombinedOutput()
	if err != nil {
		return h, fmt.Errorf("interop: %s: %w\n%s", javac, err, out)
	}
	return h, nil
})

func findCurator() (string, error) {
	if jars := os.Getenv("CURATOR_CLASSPATH"); jars != "" {
		return jars, nil
	}
	// Its manifest names the jars that it needs.
	const debian = "/usr/share/java/curator-recipes.jar"
	const log = "/usr/share/java/slf4j-simple.jar"
	if _, err := os.Stat(debian); err != nil {
		return "", fmt.Errorf("no CURATOR_CLASSPATH, and no package of Debian: %w", err)
	}
	return debian + ":" + log, nil
}

func findJava(program string) (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		program = filepath.Join(home, "bin", program)
	}
	return exec.LookPath(program)
}

func mustHave(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errNoCurator), errors.Is(err, errNoKazoo),
		errors.Is(err, errNoNode):
		zkserver.Lacking(tb, err.Error())
	default:
		tb.Fatal(err)
	}
}
