package crew

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A Java is what workers of Java are made of.
type Java struct {
	java, classpath string
	Version         string // of the runtime
	Curator         string // the version
}

// ErrNoCurator says that Curator, or a JDK, is not installed.
var ErrNoCurator = errors.New("no Curator, or no JDK, is installed " +
	"(Debian: apt-get install default-jdk-headless libcurator-recipes-java; " +
	"elsewhere CURATOR_CLASSPATH)")

// curatorVersion finds the version in the name of a jar.
var curatorVersion = regexp.MustCompile(`curator-recipes-([0-9.]*[0-9])`)

// debian is where Debian has Curator. Its manifest names the jars that it needs itself.
const debian = "/usr/share/java/"

// CompileJava compiles the program in the directory source to the directory classes.
func CompileJava(ctx context.Context, source, classes string) (*Java, error) {
	jars := os.Getenv("CURATOR_CLASSPATH")
	if jars == "" {
		found, err := filepath.Glob(debian + "curator-recipes-[0-9]*.jar")
		if err != nil || len(found) == 0 {
			return nil, ErrNoCurator
		}
		jars = strings.Join([]string{
			found[0], debian + "jackson-databind.jar", debian + "slf4j-simple.jar",
		}, ":")
	}
	curator := "of unknown version"
	if found := curatorVersion.FindStringSubmatch(jars); found != nil {
		curator = found[1]
	}
	java, err := findJava("java")
	javac, compilerErr := findJava("javac")
	if err := errors.Join(err, compilerErr); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCurator, err)
	}
	sources, err := filepath.Glob(filepath.Join(source, "*.java"))
	if err != nil {
		return nil, err
	}
	arguments := append([]string{"-d", classes, "-cp", jars}, sources...)
	out, err := exec.CommandContext(ctx, javac, arguments...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", javac, err, out)
	}
	version, err := exec.CommandContext(ctx, java, "-version").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s -version: %w", java, err)
	}
	first, _, _ := strings.Cut(string(version), "\n")
	return &Java{
		java: java, classpath: classes + ":" + jars, Version: first, Curator: curator,
	}, nil
}

func findJava(program string) (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		program = filepath.Join(home, "bin", program)
	}
	return exec.LookPath(program)
}

// Command starts a worker. Its threads share a lock object, or have one each.
func (j *Java) Command(objects string) []string {
	return []string{
		j.java, "-Xmx1g", "-Xss256k", "-XX:+UseSerialGC",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", j.classpath,
		"Worker", objects,
	}
}
