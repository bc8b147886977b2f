package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/test/chaos/faults"
)

// A host is a machine whose workers take part in rounds: this one, or one that has
// joined.
type host interface {
	run(ctx context.Context, o roundOrder, to bench) (made int, err error)
}

// A run is a proof under way.
type run struct {
	Config
	hosts   []host
	guests  []*guest // of hosts
	root    *root
	gauge   *gauge
	records *recorder
	report  *Report
	measure []time.Duration // hand-overs of calm rounds
	calmFor time.Duration
	calmGot int // acquisitions
}

// cleanUpWithin bounds how long the znodes of a run are deleted.
const cleanUpWithin = time.Minute

// Run makes a run, and reports. An error says that it could not begin.
func (c Config) Run(ctx context.Context) (*Report, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	r := &run{Config: c, records: newRecorder(c.History)}
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	defer r.root.client.Close()
	r.work(ctx)
	r.end()
	return r.report, nil
}

// begin gets ready all that can fail.
func (r *run) begin(ctx context.Context) error {
	sessions, err := r.sessionLimits(ctx)
	if err != nil {
		return err
	}
	client, err := r.Connect(ctx, r.sessionFor(sessions))
	if err != nil {
		return err
	}
	session := client.SessionTimeout()
	r.report = newReport(r.Config, session, sessions)
	r.report.Ensemble.Releases = r.releases()
	r.root = &root{
		client: client, path: r.Root, acl: r.ACL, pace: newLimiter(ofWorkers(r.Rate)),
	}
	if err := r.root.claim(ctx); err != nil {
		client.Close()
		return err
	}
	own, err := r.Connect(ctx, session)
	if err != nil {
		return errors.Join(err, r.cleanUp())
	}
	r.gauge = startGauge(own, r.Root+witnessName, r.ACL)
	r.hosts = []host{r.Host}
	if err := r.invite(ctx); err != nil {
		return errors.Join(err, r.gauge.finish(&Ensemble{}), r.cleanUp())
	}
	r.records.keep(record{Head: r.report.head()})
	r.Say("below %s, with sessions of %v, at most %d requests a second", r.Root, session,
		r.Rate)
	return nil
}

// invite waits for the machines that are to take part.
func (r *run) invite(ctx context.Context) error {
	if r.Door == nil {
		return nil
	}
	_, stat, err := r.root.client.Get(r.Root)
	if err != nil {
		return err
	}
	r.guests, err = r.Door.admit(ctx, r.Say)
	for _, g := range r.guests {
		g.root, g.czxid = r.Root, stat.Czxid
		r.hosts = append(r.hosts, g)
	}
	r.report.Hosts, r.report.Workers = len(r.hosts), len(r.hosts)*r.Workers
	return err
}

// sessionFor is the session timeout that is asked for: four ticks if nobody wants
// another.
func (r *run) sessionFor(granted Span) time.Duration {
	const least = 3 * time.Second
	if r.Session > 0 {
		return r.Session
	}
	return min(granted.Most, max(2*granted.Least, least))
}

// work makes rounds until those that count have taken long enough, or something is found.
func (r *run) work(ctx context.Context) {
	session := r.report.Session
	most := 2 * (1 + int(r.For/lengthOf(session, r.For)))
	left := r.For
	for n := 0; left > 0 && r.report.open(); n++ {
		if n == most {
			r.report.undecided(-1, "rounds", fmt.Sprintf(
				"%d rounds of %d did not count", len(r.report.Skipped), n))
			return
		}
		length := lengthOf(session, left)
		// The first round is calm in any case: it is measured.
		calm := r.Calm || n == 0 && left > length
		if r.round(ctx, n, length, calm) {
			left -= length
		}
		if ctx.Err() != nil {
			r.report.undecided(n, "interrupted", context.Cause(ctx).Error())
		}
	}
}

// round makes one round, holds its history to the rules, and tells whether it counts.
func (r *run) round(
	ctx context.Context, n int, length time.Duration, calm bool,
) (counts bool) {
	watch := simulator.StartWatchdog()
	head := roundHead{
		Number: n, Root: fmt.Sprintf("%s/%d", r.Root, n), Session: r.report.Session,
		Calm: calm,
	}
	r.records.keep(record{Round: &head})
	j := newJudge(n, r.records.keep)
	stop := r.progress(j, length)
	made, err := r.onHosts(ctx, n, head, length, j)
	stop()
	head.Late = watch.Late()
	for _, g := range r.guests {
		head.Late = max(head.Late, g.late())
	}
	history := j.close()
	c := j.soFar()
	c.Faults = made
	if calm {
		r.calmFor, r.calmGot = r.calmFor+length, r.calmGot+c.Acquired
		r.measure = append(r.measure, handOvers(history)...)
	}
	r.records.keep(record{RoundEnd: &head})
	counts = r.report.take(head, c, r.found(ctx, head, err), history)
	if err := r.root.empty(ctx, head.Root, ""); err == nil {
		_ = r.root.delete(ctx, head.Root) // else the end tries again
	}
	return counts
}

// found joins what the workers and the checks have found.
func (r *run) found(ctx context.Context, head roundHead, err error) error {
	if ctx.Err() != nil {
		return nil // who was ended did not come to an end
	}
	if silent := r.gauge.silentFor(); err != nil && silent > head.Session/2 {
		return &undecidedError{fmt.Errorf(
			"the ensemble has not answered for %v: %w", silent.Round(time.Second), err)}
	}
	return err
}

// onHosts has all machines work, and returns how many faults there were.
func (r *run) onHosts(
	ctx context.Context, n int, head roundHead, length time.Duration, j *judge,
) (made int, err error) {
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	var mu sync.Mutex
	var calls []func() error
	rate := ofWorkers(r.Rate) / float64(len(r.hosts))
	for i, h := range r.hosts {
		o := roundOrder{
			Seed: r.Seed + uint64(max(n, 0)), First: i * workersApart, Workers: r.Workers,
			Session: head.Session, Root: head.Root, Calm: head.Calm, Rate: rate,
			Length: length,
		}
		calls = append(calls, func() error {
			did, err := h.run(ctx, o, j)
			mu.Lock()
			defer mu.Unlock()
			made += did
			if errors.As(err, new(*guestGone)) {
				abandon(err)
			}
			return err
		})
	}
	err = faults.InParallel(calls)
	return made, cmp.Or(context.Cause(ctx), err) // why all have ended comes first
}

// progressEvery is how often a run tells how far it is.
const progressEvery = 10 * time.Second

// progress tells, until stop is called, how far a round is.
func (r *run) progress(j *judge, length time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var telling sync.WaitGroup
	telling.Go(func() {
		for {
			faults.Sleep(ctx, progressEvery)
			if ctx.Err() != nil {
				return
			}
			c := r.report.Counts
			c.sum(j.soFar())
			what := "at work"
			if time.Since(j.began) > length {
				what = "ending"
			}
			r.Say("%v, round %d, %s: acquisitions: %d, holds lost: %d",
				time.Since(r.report.Began).Round(time.Second), j.round, what, c.Acquired,
				c.Lost)
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// end measures, removes what the run has made, and sums up.
func (r *run) end() {
	for _, g := range r.guests {
		g.dismiss()
	}
	e := &r.report.Ensemble
	if err := r.gauge.finish(e); err != nil {
		r.report.forgotten(err)
	}
	e.HandOver = timesOf(r.measure)
	if r.calmFor > 0 {
		e.Acquisitions = float64(r.calmGot) / r.calmFor.Seconds()
	}
	if err := r.cleanUp(); err != nil {
		r.report.Left = err.Error()
	}
	r.report.sumUp()
	r.records.keep(record{End: r.report})
	if err := r.records.flush(); err != nil {
		r.report.undecided(-1, "history", err.Error())
	}
}

// cleanUp deletes the root, whatever has become of the run.
func (r *run) cleanUp() error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpWithin)
	defer cancel()
	return r.root.remove(ctx)
}
