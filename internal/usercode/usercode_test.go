package usercode_test

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/usercode"
)

func TestContain(t *testing.T) {
	ran := false
	require.NoError(t, usercode.Contain("it", func() { ran = true }))
	require.True(t, ran)
	err := usercode.Contain("the dialer", func() { panic("no route") })
	require.EqualError(t, err, "the dialer panicked: no route")
	err = usercode.Contain("the dialer", runtime.Goexit)
	require.EqualError(t, err, "the dialer ended its goroutine (runtime.Goexit)")
}

// A failing handler fails wherever it is called.
type failing func()

func (f failing) Enabled(context.Context, slog.Level) bool  { f(); return true }
func (f failing) Handle(context.Context, slog.Record) error { f(); return nil }
func (f failing) WithAttrs([]slog.Attr) slog.Handler        { f(); return f }
func (f failing) WithGroup(string) slog.Handler             { f(); return f }

func TestLogger(t *testing.T) {
	var text bytes.Buffer
	log := usercode.Logger(slog.New(slog.NewTextHandler(&text, nil)))
	log.Debug("unseen")
	log.With("a", 1).WithGroup("g").Info("seen", "b", 2)
	require.Contains(t, text.String(), "msg=seen a=1 g.b=2")
	require.NotContains(t, text.String(), "unseen")

	for _, fail := range []func(){func() { panic("no space left") }, runtime.Goexit} {
		log := usercode.Logger(slog.New(failing(fail)))
		log.With("a", 1).WithGroup("g").Error("lost")
		_ = log.Handler().Handle(t.Context(), slog.Record{})
	}
}
