// Example shows the metrics of package otelrecipes to Prometheus, and logs each step of
// the locks by slog. From the folder above:
//
//	go run ./example -servers 127.0.0.1:2181 -listen 127.0.0.1:9464
//	curl http://127.0.0.1:9464/metrics
//
// Without servers it runs on an embedded one, zktest. dashboard.json is a dashboard of
// Grafana for these metrics.
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
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/otelrecipes"
	"github.com/zkrecipes/recipes/zktest"
)

func main() {
	servers := flag.String("servers", "", "the connect string; empty: an embedded server")
	listen := flag.String("listen", "127.0.0.1:9464", "where the metrics are, /metrics")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *servers, *listen); err != nil {
		slog.Error("the example ends", "error", err)
		os.Exit(1)
	}
}

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
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: metrics, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // until it is closed
	defer serving.Wait()
	defer func() { _ = server.Close() }() // nothing is lost
	slog.Info("metrics", "url", fmt.Sprintf("http://%s/metrics", listener.Addr()))
	return work(ctx, servers, observer)
}

// newTelemetry returns an observer, and what Prometheus scrapes its metrics from.
func newTelemetry() (*otelrecipes.Observer, http.Handler, error) {
	registry := prometheus.NewRegistry()
	export, err := exporter.New(
		exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(),
	)
	if err != nil {
		return nil, nil, err
	}
	observer, err := otelrecipes.NewObserver(
		otelrecipes.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(export))),
		// There are two locks here. Where paths have ids in them, leave these out.
		otelrecipes.WithName(func(path string) string { return path }),
	)
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return observer, mux, nil
}

// work has some owners take a mutex and a semaphore in turns, until ctx is done.
func work(ctx context.Context, servers string, observer *otelrecipes.Observer) error {
	client, err := recipes.Connect(
		ctx, servers, 10*time.Second, recipes.WithClientObserver(observer.Session),
		recipes.WithClientLogger(slog.Default()), // it says why it cannot connect
	)
	if err != nil {
		return err
	}
	defer client.Close()
	observed := recipes.WithObserver(both(observer.Lock, logged(slog.Default())))
	mutex, err := recipes.NewInterProcessMutex(client, "/example/orders", observed)
	if err != nil {
		return err
	}
	semaphore, err := recipes.NewInterProcessSemaphoreV2(
		client, "/example/printers", 2, observed,
	)
	if err != nil {
		return err
	}
	var owners sync.WaitGroup
	defer owners.Wait()
	for range 3 {
		owners.Go(func() {
			for ctx.Err() == nil {
				if err := turn(ctx, mutex, semaphore); err != nil && ctx.Err() == nil {
					slog.Warn("a turn came to nothing", "error", err)
				}
			}
		})
	}
	<-ctx.Done()
	return nil
}

// turn takes both locks once.
func turn(
	ctx context.Context, mutex *recipes.InterProcessMutex,
	semaphore *recipes.InterProcessSemaphoreV2,
) error {
	rest := func() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	err := recipes.Do(ctx, mutex, func(context.Context, *recipes.Hold) error {
		rest()
		return nil
	}, recipes.WaitAtMost(time.Second))
	if err != nil && !errors.Is(err, recipes.ErrBusy) {
		return err
	}
	lease, err := semaphore.Acquire(ctx)
	if err != nil {
		return err
	}
	rest()
	return lease.Release(context.WithoutCancel(ctx))
}
