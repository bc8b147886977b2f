// Command service runs a scheduler on several hosts, one of which leads. Its readiness is
// that of the leadership, and SIGTERM lets the next host lead at once.
//
// ZOOKEEPER_SERVERS ("host:port,host:port") names the ZooKeeper.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
)

const (
	electionPath   = "/leaders/scheduler"
	tablePath      = "/scheduler-last" // what the leader writes
	sessionTimeout = 10 * time.Second
	timeToStop     = 2 * time.Second // before anybody else leads; at most a quarter
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "the `address` of the probes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("ZOOKEEPER_SERVERS"), *listen); err != nil {
		slog.Error("the service ends", "error", err)
		os.Exit(1) // not by return: work that ignores its ctx would keep the process
	}
}

func run(ctx context.Context, servers, listen string) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err // without probes nobody would know of this candidate
	}
	defer func() { _ = listener.Close() }()
	client, err := recipes.Connect(ctx, servers, sessionTimeout,
		recipes.WithClientLogger(slog.Default()))
	if err != nil {
		return err
	}
	defer client.Close() // the next one leads at once
	s := service{client: client, work: schedule(client), exit: os.Exit}
	probes := http.Server{Handler: s.probes(), ReadHeaderTimeout: time.Second}
	go func() { _ = probes.Serve(listener) }() // until listener is closed
	return s.campaign(ctx)
}

// A service leads, or waits until it is its turn.
type service struct {
	client *recipes.Client
	work   func(ctx context.Context, term *recipes.Hold) error
	exit   func(code int)
	term   atomic.Pointer[recipes.Hold] // nil: it does not lead
}

// campaign leads again and again, until ctx ends or the work fails.
func (s *service) campaign(ctx context.Context) error {
	selector, err := recipes.NewLeaderSelector(s.client, electionPath,
		recipes.WithLossMargin(timeToStop))
	if err != nil {
		return err
	}
	err = selector.Run(ctx, s.lead)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil // as it was asked to
	}
	return err
}

// lead returns when the work has. If the leadership is lost and the work goes on, only
// the end of the process stops it: Go cannot end a goroutine from outside, and another
// host leads soon.
func (s *service) lead(ctx context.Context, term *recipes.Hold) error {
	s.term.Store(term)
	defer s.term.Store(nil)
	done := make(chan error, 1)
	go func() { done <- s.work(ctx, term) }()
	select {
	case err := <-done:
		return err
	case <-term.Lost():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(timeToStop - 500*time.Millisecond):
		s.exit(1)
		return term.Err()
	}
}

// probes answers /ready by the hold, and /live for as long as the process runs.
func (s *service) probes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/live", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		if term := s.term.Load(); term == nil || term.Err() != nil {
			http.Error(w, "this host does not lead", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// schedule returns the work: each write is done while the host leads, or not at all.
// To another store than ZooKeeper, send term.FencingToken().
func schedule(client *recipes.Client) func(context.Context, *recipes.Hold) error {
	return func(ctx context.Context, term *recipes.Hold) error {
		_, err := client.Create(tablePath, nil, 0, zk.WorldACL(zk.PermAll))
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return err
		}
		for {
			_, err := term.Multi(&zk.SetDataRequest{
				Path: tablePath, Version: -1,
				Data: fmt.Append(nil, time.Now().Format(time.RFC3339)),
			})
			if err != nil {
				return err
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}
