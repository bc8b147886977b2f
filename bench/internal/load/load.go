// Package load has the words between the bench and its worker processes: a [Load] is what
// a worker is to do with its peer's locks, a [Result] what came out. Both go as a line of
// JSON each; java/Load.java and java/Result.java are the same for Java.
package load

import "time"

// A Shape is what the users of the locks do.
type Shape string

const (
	// Cycle has each user acquire and release, again and again, for the time.
	Cycle Shape = "cycle"
	// HandOver has one user release what another one waits for; each time is measured.
	HandOver Shape = "handover"
	// Drain has waiters queue behind a holder, and each of them release at once; measured
	// from the holder's release until the last one is through.
	Drain Shape = "drain"
	// Tries has each user try, with patience, to get what is held all the time.
	Tries Shape = "tries"
	// Waiting is about what a waiter costs the process and the servers.
	Waiting Shape = "waiting"
	// Idle is about what a session with one waiter costs a second, while nothing happens.
	// Its Ops are sessions times seconds.
	Idle Shape = "idle"
	// Holding is about what a holder costs them.
	Holding Shape = "holding"
)

// A Kind is a kind of lock.
type Kind string

// The kinds. A semaphore is one lease of it.
const (
	Mutex          Kind = "mutex"
	Read           Kind = "read"
	Write          Kind = "write"
	SemaphoreMutex Kind = "semaphoreMutex"
	Semaphore      Kind = "semaphore"
)

// A Load is what one worker process is to do.
type Load struct {
	Shape   Shape    `json:"shape"`
	Kind    Kind     `json:"kind"`
	Servers []string `json:"servers"` // host:port of each
	PIDs    []int    `json:"pids"`    // the servers' processes, if they can be watched
	Path    string   `json:"path"`    // absolute, and unused so far

	Sessions int `json:"sessions"` // connections with the service
	Users    int `json:"users"`    // of each session; in Drain, Waiting, Holding: in all
	Paths    int `json:"paths"`    // locks that they are spread over in turn
	Reads    int `json:"reads"`    // of 1,000 acquisitions of Write: so many are of Read
	Leases   int `json:"leases"`   // of a semaphore

	// In nanoseconds, as JSON has them.
	Patience time.Duration `json:"patience"` // of one try
	Settle   time.Duration `json:"settle"`   // after which who asked waits for certain
	WarmUp   time.Duration `json:"warmUp"`   // what is done before the time begins
	Time     time.Duration `json:"time"`
	// In Cycle: the time lasts until so many operations are done, by all users together.
	Least int64 `json:"least"`
}

// A Result is what a worker measured. What is nil was not, or cannot be.
type Result struct {
	Ops  int64         `json:"ops"`  // acquisitions, hand-overs, tries, waiters, seconds
	Took time.Duration `json:"took"` // all of them together
	// Of one, where each is timed by itself.
	Median *time.Duration `json:"median,omitempty"`

	Requests *float64 `json:"requests,omitempty"` // for each of Ops
	Bytes    *float64 `json:"bytes,omitempty"`    // for each, both ways together

	// Processor time in Took, of this process and of all servers. The servers' is what
	// all workers together asked for.
	ClientCPU *time.Duration `json:"clientCPU,omitempty"`
	ServerCPU *time.Duration `json:"serverCPU,omitempty"`

	// For each waiter or holder, the goroutine or thread that called not included.
	Heap    *float64 `json:"heap,omitempty"` // bytes
	Threads *float64 `json:"threads,omitempty"`
	Watches *float64 `json:"watches,omitempty"`

	Unsupported bool   `json:"unsupported,omitempty"` // the peer cannot do this
	Fault       string `json:"fault,omitempty"`       // why there is no result
}
