package otelrecipes

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// An Option changes what NewObserver returns. Only this package has options.
type Option interface{ set(s *settings) error }

type option func(s *settings) error

func (o option) set(s *settings) error { return o(s) }

type settings struct {
	meters     metric.MeterProvider
	tracers    trace.TracerProvider
	name       func(path string) string
	attributes []attribute.KeyValue
}

// WithMeterProvider sets the provider of the metrics. Default: that of package otel.
func WithMeterProvider(p metric.MeterProvider) Option {
	return option(func(s *settings) error {
		if p == nil {
			return errors.New("WithMeterProvider: provider is nil")
		}
		s.meters = p
		return nil
	})
}

// WithTracerProvider sets the provider of the spans. Default: that of package otel.
func WithTracerProvider(p trace.TracerProvider) Option {
	return option(func(s *settings) error {
		if p == nil {
			return errors.New("WithTracerProvider: provider is nil")
		}
		s.tracers = p
		return nil
	})
}

// WithName adds the attribute "name" to the metrics and spans of locks: what name returns
// for the path. Without it the name is "", and all locks of a recipe are counted
// together.
//
// Each name is a separate time series, about 35 of them in each histogram, which the
// process keeps until it ends, and the database for as long as it stores anything. So do
// not return paths that contain ids: "/orders/4711" should become "orders". A few dozen
// names in all are safe. name is called at each step of each acquisition, concurrently.
func WithName(name func(path string) string) Option {
	return option(func(s *settings) error {
		if name == nil {
			return errors.New("WithName: the function is nil")
		}
		s.name = name
		return nil
	})
}

// WithAttributes adds attributes to all metrics and spans, such as the name of the
// cluster.
func WithAttributes(attributes ...attribute.KeyValue) Option {
	return option(func(s *settings) error {
		s.attributes = append(s.attributes, attributes...)
		return nil
	})
}

func newSettings(opts []Option) (*settings, error) {
	s := &settings{
		meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider(),
		name: func(string) string { return "" },
	}
	for i, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("option %d is nil", i+1)
		}
		if err := o.set(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}
