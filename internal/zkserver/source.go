package zkserver

import (
	"context"
	"errors"
	"fmt"
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
	"elsewhere unpack a release and set ZOOKEEPER_HOME)")

// isEmbedded tells whether a value of ZOOKEEPER_RUN asks for zktest.
func isEmbedded(run string) bool {
	return run == "" || run == "embedded" || run == "keeper"
}

// findSource returns the first source that there is for a value of ZOOKEEPER_RUN.
func findSource(run string) (source, error) {
	switch {
	case isEmbedded(run):
		return embedded{keeper: run == "keeper"}, nil
	case run != "real" && run != "local" && run != "container":
		return nil, fmt.Errorf("zkserver: ZOOKEEPER_RUN=%s: want real, local, "+
			"container, embedded, keeper or nothing", run)
	}
	none := []error{errNone}
	if run != "container" {
		i, err := findInstallation()
		if err == nil {
			return i, nil
		}
		none = append(none, fmt.Errorf("local: %w", err))
	}
	switch {
	case run == "local":
	case run == "real" && !mayHaveEngine():
		none = append(none, errors.New("container: no trace of a container engine"))
	default:
		e, err := findEngine()
		if err == nil {
			return e, nil
		}
		none = append(none, fmt.Errorf("container: %w", err))
	}
	return nil, errors.Join(none...)
}
