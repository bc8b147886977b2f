package main

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/zkrecipes/recipes/otelrecipes"
)

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
		otelrecipes.WithName(directory),
	)
	if err != nil {
		return nil, nil, err
	}
	return observer, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

// directory names the locks of all customers alike, "customers": a name for each would be
// a time series for each, for ever.
func directory(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}
