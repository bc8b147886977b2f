package service

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/zkserver"
)

// startZooKeeper takes ZooKeeper from where the tests of the library find a real one.
func startZooKeeper(ctx context.Context, n int) (*Service, error) {
	options := []zkserver.Option{
		zkserver.Servers(n), zkserver.Tick(2 * time.Second),
		// What it needs in the long run: the tests' servers are made to start quickly.
		zkserver.JVM("-Xmx1g", "-XX:TieredStopAtLevel=4"),
	}
	if n > 1 {
		// In ticks: where the machine is too busy for a while, no new leader helps.
		options = append(options, zkserver.Config("initLimit=20", "syncLimit=20"))
	}
	c, err := zkserver.OpenReal(ctx, options...)
	if err != nil {
		return nil, err
	}
	s := &Service{close: c.Close, Version: "of unknown version"}
	for _, server := range c.Servers {
		s.Addrs = append(s.Addrs, server.Addr)
		if pid := server.PID(); pid != 0 {
			s.PIDs = append(s.PIDs, pid)
		}
	}
	told, err := c.Servers[0].FourLetter("srvr")
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	first, _, _ := strings.Cut(told, "-") // behind it is the build
	s.Version = strings.TrimPrefix(first, "Zookeeper version: ") + " (" + c.Kind() + ")"
	return s, nil
}
