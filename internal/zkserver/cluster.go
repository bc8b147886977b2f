package zkserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// limit bounds every single step: a start, a kill, a clean-up. An engine on a loaded
// machine may take long.
const limit = time.Minute

// A Cluster is a ZooKeeper service: one server, or an ensemble.
type Cluster struct {
	Servers []*Server
	kind    string
	// Removes what the servers had in common, once they are gone.
	cleanUp func(context.Context) error
	closed  sync.Once
}

// Open starts a cluster of the caller's own and returns once all its servers serve. Close
// it.
func Open(ctx context.Context, opts ...Option) (*Cluster, error) {
	return open(ctx, os.Getenv("ZOOKEEPER_RUN"), opts)
}

// OpenReal is [Open], but where ZOOKEEPER_RUN asks for nothing it starts real servers.
func OpenReal(ctx context.Context, opts ...Option) (*Cluster, error) {
	return open(ctx, cmp.Or(os.Getenv("ZOOKEEPER_RUN"), "real"), opts)
}

// open is [Open] where ZOOKEEPER_RUN says run.
func open(ctx context.Context, run string, opts []Option) (*Cluster, error) {
	from, err := findSource(run)
	if err != nil {
		return nil, err
	}
	return openFrom(ctx, from, opts)
}

func openFrom(ctx context.Context, from source, opts []Option) (*Cluster, error) {
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		c, err := launch(ctx, from, s)
		// Between the choice of a port and its use somebody else may take it.
		if !errors.Is(err, errPortTaken) || attempt == 5 {
			return c, err
		}
	}
}

// Find gives a cluster that the caller may share with others: the one that
// ZOOKEEPER_SERVERS names, else one that it starts. Close it; that leaves the former
// alone.
func Find(ctx context.Context) (*Cluster, error) {
	return find(ctx, os.Getenv("ZOOKEEPER_RUN"))
}

// find is [Find] where ZOOKEEPER_RUN says run.
func find(ctx context.Context, run string) (*Cluster, error) {
	servers := os.Getenv("ZOOKEEPER_SERVERS")
	if servers == "" {
		return open(ctx, run, nil)
	}
	c := &Cluster{
		kind: "ZOOKEEPER_SERVERS", cleanUp: func(context.Context) error { return nil },
	}
	var dead []error
	for _, addr := range zk.FormatServers(strings.Split(servers, ",")) {
		c.Servers = append(c.Servers, &Server{Addr: addr, host: externalHost{}})
		answer, err := fourLetter(ctx, nil, addr, "srvr")
		if err == nil && !strings.Contains(answer, "Mode: ") {
			err = fmt.Errorf("%s answers %q", addr, answer)
		}
		if err != nil {
			dead = append(dead, err)
		}
	}
	if len(dead) == len(c.Servers) {
		return nil, fmt.Errorf(
			"zkserver: no server of ZOOKEEPER_SERVERS=%s serves: %w", servers,
			errors.Join(dead...),
		)
	}
	return c, nil
}

// Connect is the connect string of all servers: "host:port,host:port".
func (c *Cluster) Connect() string {
	addrs := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		addrs[i] = s.Addr
	}
	return strings.Join(addrs, ",")
}

// Kind tells where the cluster comes from: "ZOOKEEPER_SERVERS", "container", "local" or
// "embedded".
func (c *Cluster) Kind() string { return c.kind }

// Close stops the servers and removes their data. Only the first call does anything.
func (c *Cluster) Close() error {
	var errs []error
	c.closed.Do(func() {
		// A context of its own: what the caller's has ended must be cleaned up all the
		// more.
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		for _, s := range c.Servers {
			if err := s.host.remove(ctx); err != nil {
				errs = append(errs, s.failed("remove", err))
			}
		}
		if err := c.cleanUp(ctx); err != nil {
			errs = append(errs, fmt.Errorf("zkserver: close %s: %w", c.Connect(), err))
		}
	})
	return errors.Join(errs...)
}

func launch(ctx context.Context, from source, s settings) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := from.prepare(ctx, s)
	if err == nil {
		err = c.start(ctx)
	}
	if err == nil {
		return c, nil
	}
	if c != nil {
		err = errors.Join(err, c.Close())
	}
	return nil, err
}

// start starts all servers and waits until each of them serves. The first failure ends
// the wait for the others, which may not serve without the one that failed.
func (c *Cluster) start(ctx context.Context) error {
	for _, s := range c.Servers {
		if err := s.host.start(ctx); err != nil {
			return s.failed("start", err)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, s := range c.Servers {
		wg.Go(func() {
			if err := s.await(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
