package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// A source is where servers of our own come from.
type source interface {
	// prepare makes the servers of one cluster, and starts none. With an error it may
	// return a cluster too, to be closed.
	prepare(context.Context, settings) (*Cluster, error)
}

var errNone = errors.New("zkserver: no ZooKeeper to be had: start a container engine, " +
	"or install a Java runtime and ZooKeeper " +
	"(Debian: apt-get install default-jre-headless libzookeeper-java; " +
	"elsewhere unpack a release and set ZOOKEEPER_HOME), or let scripts/test.sh do it")

// findSource returns the first source that there is.
func findSource() (source, error) {
	run := os.Getenv("ZOOKEEPER_RUN")
	switch run {
	case "", "container", "local":
	case "embedded":
		return embedded{}, nil
	case "keeper":
		return embedded{keeper: true}, nil
	default:
		return nil, fmt.Errorf(
			"zkserver: ZOOKEEPER_RUN=%s: want container, local, embedded, keeper or "+
				"nothing", run,
		)
	}
	none := []error{errNone}
	switch {
	case run == "local":
	case run == "" && !mayHaveEngine():
		none = append(none, errors.New("container: no trace of a container engine"))
	default:
		e, err := findEngine()
		if err == nil {
			return e, nil
		}
		none = append(none, fmt.Errorf("container: %w", err))
	}
	if run != "container" {
		i, err := findInstallation()
		if err == nil {
			return i, nil
		}
		none = append(none, fmt.Errorf("local: %w", err))
	}
	return nil, errors.Join(none...)
}
