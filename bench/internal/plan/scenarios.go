package plan

import (
	"time"

	"github.com/zkrecipes/recipes/bench/internal/load"
)

// A Unit says what a scenario is about.
type Unit string

// The units.
const (
	Rate      Unit = "rate"      // operations a second
	Each      Unit = "each"      // the time of all divided by their number
	Latency   Unit = "latency"   // the median of the times of one
	Footprint Unit = "footprint" // what one costs in memory, goroutines, watches
	Upkeep    Unit = "upkeep"    // what one costs a second in requests, bytes, CPU
)

// A Scenario is a load for each of some processes, which have it at the same time, and
// what is asked of it.
type Scenario struct {
	ID        string
	Title     string
	Label     string // the title in two or three words, for pictures
	About     string
	Unit      Unit
	Processes int
	Load      load.Load
	Short     bool // it is in the short round
}

// Scenarios are all of them, in the order of the tables.
var Scenarios = []Scenario{
	{
		ID: "S1", Title: "An uncontended lock", Unit: Rate, Short: true,
		Label: "uncontended",
		About: "One user acquires and releases.",
		Load:  load.Load{Shape: load.Cycle, Sessions: 1, Users: 1},
	},
	{
		ID: "S2", Title: "8 sessions on one path", Unit: Rate,
		Label: "8 sessions",
		About: "Each session has one user.",
		Load:  load.Load{Shape: load.Cycle, Sessions: 8, Users: 1},
	},
	crowd("S3-16", 16, true),
	crowd("S3-256", 256, false),
	{
		ID: "S4", Title: "64 independent locks on one connection", Unit: Rate,
		Label: "64 locks,\none connection",
		About: "Each lock has one user.",
		Load:  load.Load{Shape: load.Cycle, Sessions: 1, Users: 64, Paths: 64},
	},
	{
		ID: "S5-hand-over", Title: "A hand-over between two sessions", Unit: Latency,
		About: "From the call of Release to the return of the Acquire that has waited.",
		Load:  load.Load{Shape: load.HandOver, Sessions: 2, Users: 1}, Short: true,
	},
	queue("S5-10", 10, true),
	queue("S5-100", 100, false),
	queue("S5-1000", 1000, false),
	queue("S5-5000", 5000, false),
	readers("S6-900", "90/10", 900),
	readers("S6-999", "999/1", 999),
	{
		ID: "S7-mutex", Title: "An uncontended semaphore mutex", Unit: Rate, Short: true,
		About: "One user acquires and releases.",
		Load: load.Load{
			Shape: load.Cycle, Kind: load.SemaphoreMutex, Sessions: 1, Users: 1,
		},
	},
	{
		ID: "S7-5", Title: "A semaphore of 5", Unit: Rate,
		About: "16 users in 4 sessions acquire a lease each, and return it.",
		Load: load.Load{
			Shape: load.Cycle, Kind: load.Semaphore, Leases: 5, Sessions: 4, Users: 4,
		},
	},
	kind("S8-read", "An uncontended read lock", load.Read),
	kind("S8-write", "An uncontended write lock", load.Write),
	kind("S8-lease", "An uncontended lease", load.Semaphore),
	{
		ID: "S9", Title: "Attempts that time out", Unit: Latency,
		About: "16 users each wait 50 ms for what another session holds: how long " +
			"an attempt takes.",
		Load: load.Load{
			Shape: load.Tries, Sessions: 1, Users: 16, Patience: 50 * time.Millisecond,
		},
	},
	{
		ID: "S10-waiter", Title: "What a waiter costs", Unit: Footprint,
		About: "1,000 users of one session wait, each in a goroutine or thread of its " +
			"own, which is not counted.",
		Load: load.Load{Shape: load.Waiting, Sessions: 1, Users: 1000},
	},
	{
		ID: "S10-holder", Title: "What a holder costs", Unit: Footprint,
		About: "1,000 locks are held through one session.",
		Load:  load.Load{Shape: load.Holding, Sessions: 1, Users: 1000, Paths: 1000},
	},
	{
		ID: "S11", Title: "Two processes of 16 users on one path", Unit: Rate,
		Label:     "two processes,\n16 users each",
		About:     "The share is that of the process that gets the lock less often.",
		Processes: 2, Short: true,
		Load: load.Load{Shape: load.Cycle, Sessions: 1, Users: 16},
	},
	{
		ID: "S12", Title: "What a waiting process costs a second", Unit: Upkeep,
		About: "100 sessions of 30 s have a waiter each, on one path, while nothing " +
			"happens. Pings are requests, too; etcd's keep-alives are not counted.",
		Load: load.Load{
			Shape: load.Idle, Sessions: 100, Users: 1, Time: 20 * time.Second,
			WarmUp: 10 * time.Second,
		},
	},
}

func crowd(id string, users int, short bool) Scenario {
	return Scenario{
		ID: id, Title: plural(users, "user") + " of one connection on one path",
		Label: plural(users, "user") + ",\none connection",
		Unit:  Rate, Short: short, About: "All acquire and release.",
		Load: load.Load{Shape: load.Cycle, Sessions: 1, Users: users},
	}
}

func queue(id string, users int, short bool) Scenario {
	return Scenario{
		ID: id, Title: "A queue of " + plural(users, "user") + " drains", Unit: Each,
		Short: short, About: "They wait through 4 sessions, and each releases at once.",
		Load: load.Load{Shape: load.Drain, Sessions: 4, Users: users},
	}
}

func readers(id, ratio string, of1000 int) Scenario {
	return Scenario{
		ID: id, Title: "Readers and writers, " + ratio, Unit: Rate,
		About: "16 users in 2 sessions on one path.",
		Load: load.Load{
			Shape: load.Cycle, Kind: load.Write, Reads: of1000, Sessions: 2, Users: 8,
		},
	}
}

func kind(id, title string, k load.Kind) Scenario {
	return Scenario{
		ID: id, Title: title, Unit: Rate, About: "One user acquires and releases.",
		Load: load.Load{
			Shape: load.Cycle, Kind: k, Leases: 5, Sessions: 1, Users: 1,
		},
	}
}
