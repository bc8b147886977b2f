package lock_test

import (
	"context"
	"crypto/tls"
	"iter"
	"log/slog"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/zkrecipes/recipes"
)

// What programs compile against. A change here breaks them.

// A lockAPI is what all locks have.
type lockAPI interface {
	Acquire(ctx context.Context) error
	AcquireTimeout(ctx context.Context, timeout time.Duration) (bool, error)
	Release(ctx context.Context) error
	IsAcquiredInThisProcess() bool
	Hold(ctx context.Context) *recipes.Hold
}

// A reentrantAPI is what the locks with owners have beyond that.
type reentrantAPI interface {
	lockAPI
	IsOwned(ctx context.Context) bool
	LockPath(ctx context.Context) string
	ParticipantNodes(ctx context.Context) ([]string, error)
	Participants(ctx context.Context) ([]recipes.Participant, error)
	WatchParticipants(ctx context.Context) iter.Seq2[[]recipes.Participant, error]
	MakeRevocable(listener func())
}

// An electionAPI is what both kinds of candidates have.
type electionAPI interface {
	Participants(ctx context.Context) ([]recipes.Participant, error)
	Leader(ctx context.Context) (recipes.Participant, bool, error)
	Leaders(ctx context.Context) iter.Seq2[recipes.Participant, error]
}

// A selectorAPI leads while a function runs.
type selectorAPI interface {
	electionAPI
	HasLeadership() bool
	Run(
		ctx context.Context, lead func(ctx context.Context, term *recipes.Hold) error,
	) error
}

// A latchAPI leads until it is closed.
type latchAPI interface {
	electionAPI
	Await(ctx context.Context) (*recipes.Hold, error)
	HasLeadership() bool
	Close(ctx context.Context) error
}

// A holdAPI is what a hold tells and does.
type holdAPI interface {
	Path() string
	FencingToken() int64
	Lost() <-chan struct{}
	Err() error
	Context(parent context.Context) context.Context
	Release(ctx context.Context) error
	Multi(ops ...any) ([]zk.MultiResponse, error)
	CheckOp() *zk.CheckVersionRequest
}

// A semaphoreAPI hands out leases.
type semaphoreAPI interface {
	Acquire(ctx context.Context) (*recipes.Lease, error)
	AcquireN(ctx context.Context, n int) ([]*recipes.Lease, error)
	AcquireTimeout(
		ctx context.Context, n int, timeout time.Duration,
	) ([]*recipes.Lease, error)
	ParticipantNodes(ctx context.Context) ([]string, error)
	ReturnAll(ctx context.Context, leases []*recipes.Lease) error
	AsLock(n int) recipes.InterProcessLock
}

// A leaseAPI is one lease.
type leaseAPI interface {
	Release(ctx context.Context) error
	Data(ctx context.Context) ([]byte, error)
	NodeName() string
	FencingToken() int64
	Lost() <-chan struct{}
	Err() error
	Hold() *recipes.Hold
}

// A clientAPI is a Conn that knows its session.
type clientAPI interface {
	recipes.Conn
	SessionTimeout() time.Duration
	Unwrap() *zk.Conn
	Close()
}

var (
	_ recipes.Conn = (*zk.Conn)(nil)
	_ clientAPI    = (*recipes.Client)(nil)
	_ reentrantAPI = (*recipes.InterProcessMutex)(nil)
	_ reentrantAPI = (*recipes.ReadLock)(nil)
	_ reentrantAPI = (*recipes.WriteLock)(nil)
	_ lockAPI      = (*recipes.InterProcessSemaphoreMutex)(nil)
	_ lockAPI      = (*recipes.InterProcessMultiLock)(nil)
	_ lockAPI      = recipes.InterProcessLock(nil)
	_ holdAPI      = (*recipes.Hold)(nil)
	_ semaphoreAPI = (*recipes.InterProcessSemaphoreV2)(nil)
	_ leaseAPI     = (*recipes.Lease)(nil)
	_ selectorAPI  = (*recipes.LeaderSelector)(nil)
	_ latchAPI     = (*recipes.LeaderLatch)(nil)
)

var _ = []any{
	(func(context.Context, string, time.Duration, ...recipes.ClientOption) (
		*recipes.Client, error))(recipes.Connect),
	(func(recipes.Conn, string, ...recipes.Option) (
		*recipes.InterProcessMutex, error))(recipes.NewInterProcessMutex),
	(func(recipes.Conn, string, ...recipes.Option) (
		*recipes.InterProcessSemaphoreMutex, error))(
		recipes.NewInterProcessSemaphoreMutex,
	),
	(func(recipes.Conn, string, ...recipes.Option) (
		*recipes.InterProcessReadWriteLock, error))(recipes.NewInterProcessReadWriteLock),
	(func(*recipes.InterProcessReadWriteLock) *recipes.ReadLock)(
		(*recipes.InterProcessReadWriteLock).ReadLock),
	(func(*recipes.InterProcessReadWriteLock) *recipes.WriteLock)(
		(*recipes.InterProcessReadWriteLock).WriteLock),
	(func(recipes.Conn, []string, ...recipes.Option) (
		*recipes.InterProcessMultiLock, error))(recipes.NewInterProcessMultiLock),
	(func(...recipes.InterProcessLock) *recipes.InterProcessMultiLock)(
		recipes.NewInterProcessMultiLockOf),
	(func(*recipes.InterProcessMultiLock, context.Context) []*recipes.Hold)(
		(*recipes.InterProcessMultiLock).Holds),
	(func(recipes.Conn, string, int, ...recipes.Option) (
		*recipes.InterProcessSemaphoreV2, error))(recipes.NewInterProcessSemaphoreV2),
	(func(recipes.Conn, string, string, ...recipes.Option) (
		*recipes.InterProcessSemaphoreV2, error))(
		recipes.NewInterProcessSemaphoreV2Shared,
	),
	(func(recipes.Conn, string, ...recipes.Option) (
		*recipes.LeaderSelector, error))(recipes.NewLeaderSelector),
	(func(recipes.Conn, string, ...recipes.Option) (
		*recipes.LeaderLatch, error))(recipes.NewLeaderLatch),
	(func(
		context.Context, recipes.Conn, string, int, ...recipes.Option,
	) error)(recipes.SetSharedCount),
	(func(context.Context, recipes.Conn, string) error)(recipes.AttemptRevoke),
	(func(context.Context, recipes.Conn, string) (
		[]recipes.Participant, error))(recipes.Inspect),
	(func(context.Context) context.Context)(recipes.WithOwner),
	(func(
		context.Context, recipes.InterProcessLock,
		func(context.Context, *recipes.Hold) error, ...recipes.DoOption,
	) error)(recipes.Do),
	(func(context.Context, recipes.InterProcessLock, ...recipes.DoOption) (
		*recipes.Hold, error))(recipes.Acquire),
	(func(time.Duration) recipes.DoOption)(recipes.WaitAtMost),

	(func(*tls.Config) recipes.ClientOption)(recipes.WithTLS),
	(func(string, []byte) recipes.ClientOption)(recipes.WithAuth),
	(func(zk.Dialer) recipes.ClientOption)(recipes.WithDialer),
	(func(zk.HostProvider) recipes.ClientOption)(recipes.WithHostProvider),
	(func(*slog.Logger) recipes.ClientOption)(recipes.WithClientLogger),
	(func(time.Duration) recipes.ClientOption)(recipes.WithClientServerTick),
	(func(int) recipes.ClientOption)(recipes.WithMaxReply),
	(func(recipes.SASL) recipes.ClientOption)(recipes.WithSASL),
	(func([]zk.ACL) recipes.ClientOption)(recipes.WithChrootACL),
	(func() recipes.ClientOption)(recipes.WithExistingChroot),
	(func(func(recipes.SessionEvent)) recipes.ClientOption)(recipes.WithClientObserver),
	[]recipes.SessionEventKind{
		recipes.SessionConnected, recipes.SessionDisconnected, recipes.SessionExpired,
		recipes.SessionClosed,
	},
	recipes.SessionEvent{
		Kind: recipes.SessionConnected, Server: "", Session: int64(0),
		Timeout: time.Duration(0), Err: error(nil),
	},

	(func([]byte) recipes.Option)(recipes.WithData),
	(func([]zk.ACL) recipes.Option)(recipes.WithACL),
	(func(*slog.Logger) recipes.Option)(recipes.WithLogger),
	(func(time.Duration) recipes.Option)(recipes.WithSessionTimeout),
	(func(time.Duration) recipes.Option)(recipes.WithServerTick),
	(func(func(context.Context, recipes.Event)) recipes.Option)(recipes.WithObserver),
	(func(time.Duration, int) recipes.Option)(recipes.WithCaching),
	(func(time.Duration) recipes.Option)(recipes.WithLossMargin),
	(func(time.Duration) recipes.Option)(recipes.WithMaxHold),
	(func(...string) recipes.Option)(recipes.WithNames),

	[]error{
		recipes.ErrNotOwner, recipes.ErrLockLost, recipes.ErrUpgrade, recipes.ErrBusy,
		recipes.ErrUnavailable, recipes.ErrHoldExpired, recipes.ErrSessionEnded,
		recipes.ErrOutOfTouch, recipes.ErrNodeDeleted,
		&recipes.BusyError{Path: "", Behind: "", Ahead: 0},
	},
	recipes.Participant{
		Node: "", Kind: "", Data: []byte{}, Session: int64(0), Since: time.Time{},
		Holding: false,
	},
	recipes.Event{ID: uint64(0), Recipe: ""},
}
