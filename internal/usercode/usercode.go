package usercode

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
)

// Contain runs f, which is what the error calls it, and waits for it. The error says that
// f panicked, or ended its goroutine.
func Contain(what string, f func()) (err error) {
	done := make(chan struct{})
	// What stays if f neither returns nor panics.
	err = fmt.Errorf("%s ended its goroutine (runtime.Goexit)", what)
	go func() {
		defer close(done)
		defer func() {
			if reason := recover(); reason != nil {
				err = fmt.Errorf("%s panicked: %v", what, reason)
			}
		}()
		f()
		err = nil
	}()
	<-done
	return err
}

// Logger returns l for use on the library's goroutines: a record at which its handler
// fails is lost, and no more.
func Logger(l *slog.Logger) *slog.Logger {
	if l.Handler() == slog.DiscardHandler {
		return l
	}
	return slog.New(contained{l.Handler()})
}

const handler = "the log handler"

// contained is a handler that is contained.
type contained struct{ slog.Handler }

func (c contained) Enabled(ctx context.Context, level slog.Level) (enabled bool) {
	_ = Contain(handler, func() { enabled = c.Handler.Enabled(ctx, level) })
	return enabled
}

func (c contained) Handle(ctx context.Context, r slog.Record) (err error) {
	failed := Contain(handler, func() { err = c.Handler.Handle(ctx, r) })
	return cmp.Or(failed, err)
}

func (c contained) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := c.Handler
	_ = Contain(handler, func() { with = c.Handler.WithAttrs(attrs) })
	return contained{with}
}

func (c contained) WithGroup(name string) slog.Handler {
	with := c.Handler
	_ = Contain(handler, func() { with = c.Handler.WithGroup(name) })
	return contained{with}
}
