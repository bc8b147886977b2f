package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
	"github.com/zkrecipes/recipes/zktest"
)

// failures are how code of the user's keeps its caller from returning.
var failures = map[string]func(){
	"panic": func() { panic("no space left") }, "Goexit": runtime.Goexit,
}

// A failingHandler is a log handler that fails at each record, and when it is asked.
type failingHandler struct {
	slog.Handler
	fail func()
}

func (h failingHandler) Enabled(context.Context, slog.Level) bool {
	h.fail()
	return true
}

func (h failingHandler) Handle(context.Context, slog.Record) error {
	h.fail()
	return nil
}

// A failingProvider is a host provider that fails in one of its methods.
type failingProvider struct {
	clientOrder
	init, next, connected func()
}

func (p *failingProvider) Init(servers []string) error {
	p.init()
	return p.clientOrder.Init(servers)
}

func (p *failingProvider) Next() (string, bool) {
	p.next()
	return p.clientOrder.Next()
}

func (p *failingProvider) Connected() {
	p.connected()
	p.clientOrder.Connected()
}

// A failingSASL fails in its Begin, or in its Step.
type failingSASL struct{ begin, step func() }

func (failingSASL) Name() string { return "failing" }

func (s failingSASL) Begin(context.Context, string) (recipes.SASLExchange, error) {
	s.begin()
	return s, nil
}

func (s failingSASL) Step(context.Context, []byte) ([]byte, bool, error) {
	s.step()
	return nil, true, nil
}

func nothing() {}

// Code of the user's that fails on a goroutine of the library's takes nothing along: the
// client connects, if it can without, or says why it cannot; it loses its connection and
// gets another one, and is closed.
func TestUserCodeThatFails(t *testing.T) {
	type made struct {
		option recipes.ClientOption
		names  string // what the error of Connect names; "": it connects
	}
	provider := func(p *failingProvider) recipes.ClientOption {
		return recipes.WithHostProvider(p)
	}
	for code, make := range map[string]func(fail func(), link *zktest.Link) made{
		"log handler": func(fail func(), _ *zktest.Link) made {
			return made{option: recipes.WithClientLogger(
				slog.New(failingHandler{slog.DiscardHandler, fail}))}
		},
		"Connected": func(fail func(), _ *zktest.Link) made {
			return made{option: provider(&failingProvider{
				init: nothing, next: nothing, connected: fail,
			})}
		},
		"Next, once": func(fail func(), _ *zktest.Link) made {
			return made{option: provider(&failingProvider{
				init: nothing, next: once(fail), connected: nothing,
			})}
		},
		"Next": func(fail func(), _ *zktest.Link) made {
			return made{names: "host provider: its Next", option: provider(
				&failingProvider{init: nothing, next: fail, connected: nothing})}
		},
		"Init": func(fail func(), _ *zktest.Link) made {
			return made{names: "host provider: its Init", option: provider(
				&failingProvider{init: fail, next: nothing, connected: nothing})}
		},
		"dialer": func(fail func(), _ *zktest.Link) made {
			return made{names: "the dialer", option: recipes.WithDialer(
				func(string, string, time.Duration) (net.Conn, error) {
					fail()
					return nil, errors.New("BUG: it has not failed")
				})}
		},
		"dialer, once": func(fail func(), link *zktest.Link) made {
			first := once(fail)
			return made{option: recipes.WithDialer(
				func(n, address string, d time.Duration) (net.Conn, error) {
					first()
					return link.Dial(n, address, d)
				})}
		},
		"SASL's Begin": func(fail func(), _ *zktest.Link) made {
			return made{names: "the mechanism", option: recipes.WithSASL(
				failingSASL{begin: fail, step: nothing})}
		},
		"SASL's Step": func(fail func(), _ *zktest.Link) made {
			return made{names: "the mechanism", option: recipes.WithSASL(
				failingSASL{begin: nothing, step: fail})}
		},
	} {
		for name, fail := range failures {
			locktest.RunVirtual(t, code+": "+name, func(t *testing.T) {
				clientLeaks(t)
				cluster := zktest.Start(t)
				link := cluster.Link("ours")
				m := make(fail, link)
				opts := []recipes.ClientOption{
					recipes.WithDialer(link.Dial), m.option,
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				c, err := recipes.Connect(ctx, strings.Join(cluster.Names(), ","),
					10*time.Second, opts...)
				if m.names != "" {
					require.ErrorContains(t, err, m.names)
					return
				}
				require.NoError(t, err)
				link.Reset()
				time.Sleep(5 * time.Second)
				_, _, err = c.Get("/")
				require.NoError(t, err)
				began := time.Now()
				c.Close()
				require.Less(t, time.Since(began), time.Second)
			})
		}
	}
}

// once returns what calls f the first time only.
func once(f func()) func() {
	var called atomic.Bool
	return func() {
		if !called.Swap(true) {
			f()
		}
	}
}

// So it is with a callback of TLS.
func TestATLSCallbackThatFails(t *testing.T) {
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca := clientNewCA(t)
			certificate := ca.issue(t, "localhost", time.Now().Add(time.Hour))
			cluster := zktest.Start(t, zktest.WithTLS(&tls.Config{
				Certificates: []tls.Certificate{certificate},
			}))
			ctx, dialer := untilRedialled(t)
			_, err := recipes.Connect(ctx, cluster.ConnectString(), 10*time.Second,
				dialer, recipes.WithTLS(&tls.Config{
					InsecureSkipVerify: true, //nolint:gosec // the test is about it
					//nolint:gosec // no session of TLS is resumed
					VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
						fail()
						return nil
					},
				}))
			require.ErrorContains(t, err, "a callback of the TLS configuration")
		})
	}
}

// An observer that ends its goroutine hears of the next event all the same.
func TestAClientObserverThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zktest.Start(t)
		var told []recipes.SessionEventKind
		c, err := recipes.Connect(t.Context(), strings.Join(cluster.Names(), ","),
			10*time.Second, recipes.WithDialer(cluster.Link("ours").Dial),
			recipes.WithClientObserver(func(e recipes.SessionEvent) {
				told = append(told, e.Kind)
				runtime.Goexit()
			}))
		require.NoError(t, err)
		cluster.Link("ours").Reset()
		time.Sleep(5 * time.Second)
		c.Close()
		synctest.Wait()
		require.Equal(t, []recipes.SessionEventKind{
			recipes.SessionConnected, recipes.SessionDisconnected,
			recipes.SessionConnected, recipes.SessionClosed,
		}, told)
	})
}

// Whatever a hook of OnClose does, Close ends the session, and in time; the other hooks
// are called, and the holders of locks are told.
func TestWhatAHookOfOnCloseDoes(t *testing.T) {
	for name, hook := range map[string]func(
		t *testing.T, c *recipes.Client, lock *recipes.InterProcessMutex,
		owner context.Context,
	){
		"Close": func(
			_ *testing.T, c *recipes.Client, _ *recipes.InterProcessMutex,
			_ context.Context,
		) {
			c.Close()
		},
		"Close, on another goroutine": func(
			_ *testing.T, c *recipes.Client, _ *recipes.InterProcessMutex,
			_ context.Context,
		) {
			done := make(chan struct{})
			go func() { defer close(done); c.Close() }()
			<-done
		},
		"Release": func(
			t *testing.T, _ *recipes.Client, lock *recipes.InterProcessMutex,
			owner context.Context,
		) {
			began := time.Now()
			require.Error(t, lock.Release(owner))
			require.Less(t, time.Since(began), time.Second)
		},
		"Acquire": func(
			t *testing.T, _ *recipes.Client, lock *recipes.InterProcessMutex,
			_ context.Context,
		) {
			require.ErrorIs(t, lock.Acquire(locktest.Owner(t)), zk.ErrConnectionClosed)
		},
		"Acquire of a lock that is not in use": func(
			t *testing.T, c *recipes.Client, _ *recipes.InterProcessMutex,
			_ context.Context,
		) {
			lock := locktest.NewMutex(t, c, "/other")
			require.ErrorIs(t, lock.Acquire(locktest.Owner(t)), zk.ErrConnectionClosed)
		},
		"panic": func(
			*testing.T, *recipes.Client, *recipes.InterProcessMutex, context.Context,
		) {
			failures["panic"]()
		},
		"a panic after Close": func(
			*testing.T, *recipes.Client, *recipes.InterProcessMutex, context.Context,
		) {
			time.Sleep(time.Minute)
			failures["panic"]()
		},
		"Goexit": func(
			*testing.T, *recipes.Client, *recipes.InterProcessMutex, context.Context,
		) {
			failures["Goexit"]()
		},
		"nothing for a minute": func(
			*testing.T, *recipes.Client, *recipes.InterProcessMutex, context.Context,
		) {
			time.Sleep(time.Minute)
		},
	} {
		for _, order := range []string{"first", "last"} {
			locktest.RunVirtual(t, name+", "+order, func(t *testing.T) {
				cluster := zktest.Start(t)
				c := locktest.ConnectThrough(t, cluster, "ours")
				owner := locktest.Owner(t)
				var lock *recipes.InterProcessMutex
				register := []func(){
					func() {
						lock = locktest.NewMutex(t, c, "/lock")
						require.NoError(t, lock.Acquire(owner))
					},
					func() { c.OnClose(func() { hook(t, c, lock, owner) }) },
				}
				if order == "first" {
					slices.Reverse(register)
				}
				for _, f := range register {
					f()
				}
				var others atomic.Int32
				for range 10 {
					c.OnClose(func() { others.Add(1) })
				}
				hold := lock.Hold(owner)
				began := time.Now()
				if name == "panic" {
					require.PanicsWithValue(t, "no space left", c.Close)
				} else {
					c.Close()
				}
				require.LessOrEqual(t, time.Since(began), 3*time.Second)
				if name == "Close" || name == "Release" {
					require.Less(t, time.Since(began), time.Second)
				}
				require.Empty(t, cluster.Sessions())
				require.Error(t, hold.Err())
				require.EqualValues(t, 10, others.Load())
			})
		}
	}
}
