package prove

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/simulator"
)

// An Access is how the processes of a run reach the ensemble. Each has its own.
type Access struct {
	Servers []string // host:port each
	// Release returns the release of a server, "" if it does not tell. May be nil.
	Release func(server string) string
	// Connect opens a session, with no chroot.
	Connect func(
		ctx context.Context, session time.Duration, opts ...recipes.ClientOption,
	) (*recipes.Client, error)
	ACL []zk.ACL // of all that is created
	TLS bool     // connections are hidden
}

// A Host is what a machine brings to a run.
type Host struct {
	Access
	// Worker returns the command of a worker process, which calls Work.
	Worker func() *exec.Cmd
	// Start starts it. The channel is closed when the process has ended.
	Start func(cmd *exec.Cmd) (ended <-chan struct{}, err error)
}

// A Config says what a run is made of.
type Config struct {
	Host
	For     time.Duration // for how long workers work, all rounds together
	Workers int           // on each machine
	Rate    int           // requests a second, of all workers and of the judge together
	Calm    bool          // no faults
	// Root is a path of the servers', which must not exist, or have the marker.
	Root    string
	Session time.Duration // the session timeout to ask for; 0: four ticks
	Seed    uint64
	Version string    // of this program, for the report
	History io.Writer // takes the records; may be nil
	Say     func(format string, args ...any)
	Door    *Door // where others join; nil: all workers are on this machine
}

const (
	leastRate  = 20
	mostRate   = 10_000
	mostWorker = 32
)

// Check refuses what no server has to be asked about, and names the flag.
func (c *Config) Check() error {
	switch {
	case c.For < time.Second:
		return fmt.Errorf("--for %v: must be 1s or more", c.For)
	case c.Workers < 2 || c.Workers > mostWorker:
		return fmt.Errorf("--workers %d: must be from 2 to %d", c.Workers, mostWorker)
	case c.Rate < leastRate || c.Rate > mostRate:
		return fmt.Errorf("--rate %d: must be from %d to %d", c.Rate, leastRate, mostRate)
	case c.Root == "/" || c.Root == "":
		return errors.New("--root /: must be a path of its own")
	}
	return nil
}

const (
	owners = 3 // in each worker
	// roundFor is how long workers work in a round, unless sessions are long.
	roundFor = 30 * time.Second
	// sessionsPerRound is how long a round is at least, so that one can be suspended for
	// longer than a session, and go on.
	sessionsPerRound = 4
	// measureMost bounds what waits and holds are measured by, measureCalm in calm
	// rounds, where nobody has to hold for as long as a fault lasts.
	measureMost = 2 * time.Second
	measureCalm = time.Second / 2
	// ofJudge is how many requests a second the judge makes: see pace.
	ofJudge = 2 * int(time.Second/pace)
	// killedMost is how many workers of a machine are killed in a round.
	killedMost = 1
	// workersApart is by how much the numbers of workers on two machines differ.
	workersApart = 1000
	// Each worker that stands in for one that was killed has a number of its own.
	insteadApart = 100
)

// ofWorkers is what the judge leaves to the workers of a rate, and between rounds to who
// deletes: they ask half as often on average, and the judge always does.
func ofWorkers(rate int) float64 { return float64(rate - 2*ofJudge) }

// measure is what waits and holds are measured by.
func measure(session time.Duration, calm bool) time.Duration {
	most := measureMost
	if calm {
		most = measureCalm
	}
	return min(session/2, most)
}

// endWithin bounds what comes after the work of a round: sessions of those who were
// killed end, and everybody gets every lock once more.
func endWithin(session time.Duration) time.Duration { return 4*session + 30*time.Second }

// locksOf are one of each kind, below a path.
func locksOf(root string) []simulator.Lock {
	return append(simulator.DefaultLocks(root), simulator.Lock{
		Recipe: simulator.PersistentNode, Paths: []string{root + "/name"},
	})
}

// heldBelow are the locks that are held for longer than a session, so that a worker who
// is cut off is likely to have one to lose, and another waits for it.
func heldBelow(root string) []simulator.Lock {
	return []simulator.Lock{
		{Recipe: simulator.Mutex, Paths: []string{root + "/long-1"}},
		{Recipe: simulator.Mutex, Paths: []string{root + "/long-2"}},
	}
}

// lengthOf is for how long the workers of a round work.
func lengthOf(session, left time.Duration) time.Duration {
	return min(left, max(roundFor, sessionsPerRound*session))
}
