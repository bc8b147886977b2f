package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/zkrecipes/recipes"
)

// A service is a command that goes on over outages, and says so: lead, or register.
type service struct {
	runner
	name       string
	connection *connection
	stderr     io.Writer
	leaving    atomic.Bool // the client is being closed
}

// say says what has happened at a path.
func (s *service) say(path, format string, args ...any) {
	say(s.stderr, fmt.Sprintf("%s %s: %s", s.name, path, fmt.Sprintf(format, args...)))
}

// connect waits for ZooKeeper for as long as it takes.
func (s *service) connect(
	ctx context.Context, to *target, path string,
) (*recipes.Client, error) {
	to.options = append(to.options, recipes.WithClientObserver(s.session(path)))
	for {
		client, err := to.connect(ctx)
		if err == nil || ctx.Err() != nil || codeOf(err) != exitUnavailable {
			return client, err
		}
		s.say(path, "still waiting: %v", err)
	}
}

// session says when ZooKeeper is out of reach, and when it is back: otherwise a machine
// that waits would say nothing, however long an outage lasts.
func (s *service) session(path string) func(recipes.SessionEvent) {
	away := false
	return func(e recipes.SessionEvent) {
		switch {
		case e.Kind == recipes.SessionDisconnected && !s.leaving.Load():
			away = true
			s.say(path, "ZooKeeper is out of reach: %v", e.Err)
		case e.Kind == recipes.SessionConnected && away:
			away = false
			s.say(path, "ZooKeeper is back")
		}
	}
}
