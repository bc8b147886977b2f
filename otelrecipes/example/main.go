// Example is a service that takes orders over HTTP. It books the orders of a customer one
// at a time, on however many hosts it runs, under a lock for each customer. A request
// waits for the lock for a limited time. Then the answer is 409 if others are ahead, and
// 503 if ZooKeeper cannot be reached.
//
//	go run ./example -servers 127.0.0.1:2181 -listen 127.0.0.1:9464
//	for n in 1 2 3; do curl -X POST http://127.0.0.1:9464/customers/ann/orders & done
//	curl http://127.0.0.1:9464/metrics
//
// It has the metrics of package otelrecipes for Prometheus, and logs each step of the
// locks by slog. dashboard.json is a dashboard for Grafana.
//
// Without -servers and ZOOKEEPER_SERVERS it runs on an embedded ZooKeeper, zktest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

const (
	sessionTimeout = 10 * time.Second
	patience       = 2 * time.Second // how long a request waits for its lock at most
	requestTime    = 5 * time.Second // how long it lasts in all, at most
	longestName    = 100             // of a customer, in bytes
)

func main() {
	servers := flag.String("servers", os.Getenv("ZOOKEEPER_SERVERS"),
		"the connect `string`; empty: an embedded server")
	listen := flag.String("listen", "127.0.0.1:9464", "the `address` to serve HTTP on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *servers, *listen); err != nil {
		slog.Error("the example ends", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, servers, listen string) error {
	if servers == "" {
		cluster, err := zktest.New()
		if err != nil {
			return err
		}
		defer cluster.Close()
		servers = cluster.ConnectString()
	}
	observer, metrics, err := newTelemetry()
	if err != nil {
		return err
	}
	client, err := recipes.Connect(
		ctx, servers, sessionTimeout, recipes.WithClientObserver(observer.Session),
		recipes.WithClientLogger(slog.Default()),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	s := service{client, both(observer.Lock, logged(slog.Default()))}
	server := &http.Server{Handler: s.handler(metrics), ReadHeaderTimeout: requestTime}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	slog.Info("serving", "url", fmt.Sprintf("http://%s", listener.Addr()))
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// What is under way comes to its end, and gives its lock back.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	return server.Shutdown(end)
}

// A service takes orders.
type service struct {
	client  *recipes.Client
	observe func(context.Context, recipes.Event)
}

func (s service) handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("POST /customers/{customer}/orders", s.order)
	return mux
}

func (s service) order(w http.ResponseWriter, r *http.Request) {
	customer := r.PathValue("customer")
	if len(customer) > longestName {
		http.Error(w, "the name of the customer is too long", http.StatusBadRequest)
		return
	}
	// Escaped: a name with a slash in it would be another lock.
	path := "/customers/" + url.PathEscape(customer)
	lock, err := recipes.NewInterProcessMutex(
		s.client, path, recipes.WithObserver(s.observe),
	)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// Or anybody could make a znode of any name, one for each request.
	if !exists(customer) {
		http.Error(w, "there is no such customer", http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTime)
	defer cancel()
	err = recipes.Do(ctx, lock, book, recipes.WaitAtMost(patience))
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, recipes.ErrBusy):
		w.Header().Set("Retry-After", "1")
		http.Error(w, "other orders of this customer are ahead", http.StatusConflict)
	case errors.Is(err, recipes.ErrUnavailable):
		w.Header().Set("Retry-After", "10")
		http.Error(w, "nothing can be booked now", http.StatusServiceUnavailable)
	default: // it may have been booked: the client has to look before it tries again
		slog.ErrorContext(ctx, "an order failed", "path", path, "error", err)
		http.Error(w, "an order failed", http.StatusInternalServerError)
	}
}

// exists asks the database for a customer. Ours are all whose names begin with an "a".
func exists(customer string) bool { return strings.HasPrefix(customer, "a") }

// book does the work. What it writes to takes the fencing token along.
func book(ctx context.Context, hold *recipes.Hold) error {
	slog.DebugContext(ctx, "booking", "token", hold.FencingToken())
	select {
	case <-time.After(100 * time.Millisecond): // the database at work
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
