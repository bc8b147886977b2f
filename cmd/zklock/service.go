package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/urfave/cli/v3"

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

// under connects, and calls serve with what is the same each time that CMD runs.
func (s *service) under(
	ctx context.Context, cmd *cli.Command, serve func(*beginning, *supervision) error,
) (err error) {
	path, argv, err := command(cmd, "PATH")
	if err != nil {
		return err
	}
	defer within(cmd, path, &err)
	b, err := s.begin(ctx, cmd, s.connection)
	if err != nil {
		return err
	}
	defer b.end()
	client, err := s.connect(b.waiting, b.to, path)
	if err != nil {
		return signalled(b.waiting, err)
	}
	defer client.Close()
	defer s.leaving.Store(true)
	if err := s.fits(client.SessionTimeout(), "the servers'"); err != nil {
		return err
	}
	return serve(b, &supervision{
		argv: argv, path: path, client: client, killAfter: s.killAfter, stderr: s.stderr,
		signals: b.signals,
	})
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
