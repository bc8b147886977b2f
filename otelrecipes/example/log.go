package main

import (
	"context"
	"log/slog"

	"github.com/zkrecipes/recipes"
)

// both tells two observers.
func both(
	one, two func(context.Context, recipes.Event),
) func(context.Context, recipes.Event) {
	return func(ctx context.Context, e recipes.Event) {
		one(ctx, e)
		two(ctx, e)
	}
}

// logged is an observer that writes each step to a log. The fencing token stands there,
// too, by which what a store was told can be found again.
func logged(log *slog.Logger) func(context.Context, recipes.Event) {
	return func(ctx context.Context, e recipes.Event) {
		level := slog.LevelDebug
		switch e.Kind {
		case recipes.EventTimedOut:
			level = slog.LevelInfo
		case recipes.EventFailed, recipes.EventLost:
			level = slog.LevelWarn
		}
		if !log.Enabled(ctx, level) {
			return
		}
		what := []slog.Attr{
			slog.String("recipe", e.Recipe), slog.String("path", e.Path),
			slog.String("node", e.Node), slog.Duration("elapsed", e.Elapsed),
		}
		if e.Kind == recipes.EventQueued {
			what = append(what, slog.Int("ahead", e.Ahead))
		}
		if e.Token != 0 {
			what = append(what, slog.Int64("token", e.Token))
		}
		if e.Err != nil {
			what = append(what, slog.Any("error", e.Err))
		}
		log.LogAttrs(ctx, level, "lock "+e.Kind.String(), what...)
	}
}
