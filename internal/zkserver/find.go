package zkserver

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// A site is where servers of our own can run.
type site interface {
	// place prepares the servers of one cluster, and starts none. With an error it may return a cluster too, to be closed.
	place(context.Context, settings) (*Cluster, error)
}

var errNone = errors.New("zkserver: no ZooKeeper to be had: start a container engine, " +
	"or install a Java runtime and ZooKeeper (Debian: apt-get install default-jre-headless libzookeeper-java; " +
	"elsewhere unpack a release and set ZOOKEEPER_HOME), or let scripts/test.sh do it")

// findSite returns the first site that there is.
func findSite() (site, error) {
	run := os.Getenv("ZOOKEEPER_RUN")
	switch run {
	case "", "container", "local":
	case "embedded":
		return embedded{}, nil
	default:
		return nil, fmt.Errorf("zkserver: ZOOKEEPER_RUN=%s: want container, local, embedded or nothing", run)
	}
	none := []error{errNone}
	if run != "local" {
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
