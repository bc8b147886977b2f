package otelrecipes_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/otelrecipes"
	"github.com/zkrecipes/recipes/zktest"
)

// Without WithMeterProvider the metrics go to the provider that otel.SetMeterProvider has
// set.
func ExampleObserver() {
	reader := sdkmetric.NewManualReader()
	observer, err := otelrecipes.NewObserver(
		otelrecipes.WithMeterProvider(
			sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		otelrecipes.WithAttributes(attribute.String("service", "reports")),
		// Without this no metric has a path: use it where locks are few.
		otelrecipes.WithName(func(path string) string {
			return strings.TrimPrefix(path, "/locks/")
		}),
		otelrecipes.WithTracerProvider(noop.NewTracerProvider()), // no spans
	)
	check(err)

	cluster, err := zktest.New()
	check(err)
	defer cluster.Close()
	ctx := context.Background()
	client, err := recipes.Connect(ctx, cluster.ConnectString(), 10*time.Second,
		recipes.WithClientObserver(observer.Session))
	check(err)
	defer client.Close()
	lock, err := recipes.NewInterProcessMutex(client, "/locks/orders",
		recipes.WithObserver(observer.Lock))
	check(err)
	check(recipes.Do(ctx, lock,
		func(context.Context, *recipes.Hold) error { return nil }))

	var metrics metricdata.ResourceMetrics
	check(reader.Collect(ctx, &metrics))
	for _, m := range metrics.ScopeMetrics[0].Metrics {
		if m.Name == "zookeeper.lock.hold.duration" {
			holds := m.Data.(metricdata.Histogram[float64])
			fmt.Println(holds.DataPoints[0].Count, "hold")
		}
	}
	// Output: 1 hold
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
