package lock_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

// zeros are the zero values of all types that have methods to call.
var zeros = []any{
	new(recipes.InterProcessMutex), new(recipes.InterProcessReadWriteLock),
	new(recipes.ReadLock), new(recipes.WriteLock),
	new(recipes.InterProcessReadWriteLock).ReadLock(),
	new(recipes.InterProcessReadWriteLock).WriteLock(),
	new(recipes.InterProcessSemaphoreMutex), new(recipes.InterProcessSemaphoreV2),
	new(recipes.InterProcessMultiLock), new(recipes.LeaderSelector),
	new(recipes.LeaderLatch), new(recipes.Lease), new(recipes.Hold), new(recipes.Client),
	new(recipes.Participant), new(recipes.EventKind), new(recipes.SessionEventKind),
	new(recipes.PersistentNode), new(recipes.GroupMember), new(recipes.Member),
	// AsLock never fails.
	(*recipes.InterProcessSemaphoreV2)(nil).AsLock(1),
	new(recipes.InterProcessSemaphoreV2).AsLock(1),
}

// values are types whose methods are those of a value, which a nil pointer has not.
var values = []any{
	new(recipes.Participant), new(recipes.EventKind), new(recipes.SessionEventKind),
	new(recipes.Member),
}

// nils returns a nil pointer of each type that has methods of pointers.
func nils() (all []any) {
	for _, zero := range zeros {
		of := reflect.TypeOf(zero)
		isValue := slices.ContainsFunc(values, func(v any) bool {
			return reflect.TypeOf(v) == of
		})
		if !isValue {
			all = append(all, reflect.Zero(of).Interface())
		}
	}
	return all
}

// Who adds a type adds it to zeros.
func TestAllTypesAreAmongTheZeros(t *testing.T) {
	text, err := os.ReadFile("../../../test/api/recipes.txt")
	require.NoError(t, err)
	method := regexp.MustCompile(`(?m)^method \(\*?(\w+)\)`)
	for _, found := range method.FindAllStringSubmatch(string(text), -1) {
		others := []string{ // interfaces, and values that anybody may make
			"Conn", "InterProcessLock", "SASL", "SASLExchange", "SessionConn",
			"BusyError", "Event",
		}
		require.True(t, slices.Contains(others, found[1]) ||
			slices.ContainsFunc(zeros, func(zero any) bool {
				return reflect.TypeOf(zero).Elem().Name() == found[1]
			}), found[1])
	}
}

var (
	ctxType   = reflect.TypeFor[context.Context]()
	errorType = reflect.TypeFor[error]()
)

// argument is what a method is given for a parameter.
func argument(ctx context.Context, of reflect.Type) reflect.Value {
	switch {
	case of == ctxType && ctx != nil:
		return reflect.ValueOf(ctx)
	case of.Kind() == reflect.Func:
		return reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value {
			panic("nothing is to be called")
		})
	case of.Kind() == reflect.Int: // how many leases
		return reflect.ValueOf(1)
	}
	return reflect.Zero(of)
}

// call calls a method with ctx, and returns what it returned, without a panic.
func call(ctx context.Context, t *testing.T, method reflect.Value) []reflect.Value {
	t.Helper()
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		if method.Type().IsVariadic() && i == method.Type().NumIn()-1 {
			break
		}
		args = append(args, argument(ctx, method.Type().In(i)))
	}
	var results []reflect.Value
	require.NotPanics(t, func() { results = method.Call(args) })
	return results
}

// isRefused requires an error among the results that says one thing.
func isRefused(t *testing.T, results []reflect.Value, says string) {
	t.Helper()
	for _, result := range results {
		if result.Type() == errorType {
			require.False(t, result.IsNil(), "no error")
			require.ErrorContains(t, result.Interface().(error), says)
		}
		if result.Kind() != reflect.Func || result.Type().NumIn() != 1 {
			continue
		}
		seen := 0
		for _, err := range result.Seq2() {
			require.ErrorContains(t, err.Interface().(error), says)
			seen++
		}
		require.Equal(t, 1, seen, "it ends")
	}
}

func TestAZeroValueIsRefused(t *testing.T) {
	for _, zero := range slices.Concat(zeros, nils()) {
		value := reflect.ValueOf(zero)
		for i := range value.NumMethod() {
			name := fmt.Sprintf("%T.%s", zero, value.Type().Method(i).Name)
			for _, ctx := range []context.Context{nil, t.Context()} {
				t.Run(name, func(t *testing.T) {
					isRefused(t, call(ctx, t, value.Method(i)), "this is a zero value")
				})
			}
		}
	}
	require.False(t, new(recipes.InterProcessMultiLock).IsAcquiredInThisProcess())
	<-new(recipes.Hold).Lost()
	<-(*recipes.Hold)(nil).Lost()
	for _, hold := range []*recipes.Hold{nil, new(recipes.Hold)} {
		require.ErrorIs(t, hold.Err(), recipes.ErrNotOwner)
		require.ErrorIs(t, hold.Err(), recipes.ErrLockLost, "Lost is closed")
		ctx := hold.Context(t.Context())
		require.ErrorIs(t, context.Cause(ctx), recipes.ErrLockLost)
	}
	<-new(recipes.Lease).Lost()
	<-(*recipes.Lease)(nil).Lost()
	require.ErrorIs(t, (*recipes.Lease)(nil).Err(), recipes.ErrLockLost)
	_, err := recipes.NewInterProcessMutex(new(recipes.Client), "/lock")
	require.ErrorContains(t, err, "this is a zero value")
	err = recipes.Do(t.Context(), new(recipes.InterProcessMutex), locktest.Nothing)
	require.ErrorContains(t, err, "this is a zero value")
}

func TestANilCtxIsRefused(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		mutex := b.Mutex(t, b.Ours, "/mutex")
		rw := locktest.NewReadWriteLock(t, b.Ours, "/rw")
		semaphoreMutex := locktest.NewSemaphoreMutex(t, b.Ours, "/m")
		semaphore := locktest.NewSemaphore(t, b.Ours, "/s", 3)
		multi := locktest.NewMultiLock(t, b.Ours, []string{"/a", "/b"})
		selector, err := recipes.NewLeaderSelector(b.Ours, "/selector")
		require.NoError(t, err)
		latch := locktest.NewLatch(t, b.Ours, "/latch")
		lease, err := semaphore.Acquire(t.Context())
		require.NoError(t, err)
		for _, value := range []any{
			mutex, rw.ReadLock(), rw.WriteLock(), semaphoreMutex, semaphore, multi,
			selector, latch, lease, lease.Hold(),
		} {
			v := reflect.ValueOf(value)
			for i := range v.NumMethod() {
				method := v.Type().Method(i)
				if method.Type.NumIn() < 2 || method.Type.In(1) != ctxType {
					continue
				}
				name := fmt.Sprintf("%T.%s", value, method.Name)
				var nobody context.Context
				results := call(nobody, t, v.Method(i))
				if method.Name == "Context" { // whose parent may be nil
					continue
				}
				if len(results) == 1 && results[0].Type() != errorType &&
					results[0].Kind() != reflect.Func {
					require.True(t, results[0].IsZero(), name)
				}
				isRefused(t, results, "ctx is nil")
			}
		}
		require.NoError(t, lease.Err())
		require.NoError(t, lease.Release(t.Context()), "it was not released")
		isNil := func(err error) {
			t.Helper()
			require.ErrorContains(t, err, "ctx is nil")
		}
		//nolint:staticcheck // nil on purpose
		{
			isNil(recipes.Do(nil, mutex, locktest.Nothing))
			isNil(recipes.AttemptRevoke(nil, b.Ours, "/mutex/x-lock-0000000007"))
			isNil(recipes.SetSharedCount(nil, b.Ours, "/count", 1))
			_, err = recipes.Inspect(nil, b.Ours, "/mutex")
			isNil(err)
			_, err = recipes.Connect(nil, "h", 1)
			isNil(err)
			require.NoError(t, mutex.Acquire(recipes.WithOwner(nil)))
		}
	})
}
