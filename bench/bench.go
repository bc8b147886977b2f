package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zkrecipes/recipes/bench/internal/crew"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/report"
	"github.com/zkrecipes/recipes/bench/internal/service"
)

// bench is one run.
type bench struct {
	*runCommand
	plan plan.Plan
	data report.Data
	crew *crew.Crew
	java *crew.Java // nil without a peer in Java
	temp string     // a directory of our own
	told *progress
}

// makeCrew finds out how each peer's workers are started. Without a Java for Curator it
// is left out.
func (b *bench) makeCrew(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(b.plan.Peers, inJava) {
		err = b.compileJava(ctx)
	}
	if err != nil {
		b.leaveOut("Curator", err, inJava)
	}
	commands := map[string][]string{}
	for _, p := range b.plan.Peers {
		if inJava(p) {
			commands[p.Name] = b.java.Command(p.Objects)
		} else {
			commands[p.Name] = []string{self, "worker", p.Name}
		}
	}
	b.crew = crew.New(commands, b.Limit)
	return nil
}

func inJava(p plan.Peer) bool { return p.Objects != "" }

func (b *bench) compileJava(ctx context.Context) (err error) {
	b.java, err = crew.CompileJava(ctx, "java", filepath.Join(b.temp, "classes"))
	if err == nil {
		b.data.AddFact("Java", b.java.Version)
		b.data.AddFact("Curator", b.java.Curator)
	}
	return err
}

// leaveOut goes on without those peers that cannot be measured.
func (b *bench) leaveOut(what string, why error, which func(plan.Peer) bool) {
	first, _, _ := strings.Cut(why.Error(), "\n")
	fmt.Fprintf(os.Stderr, "%s is left out: %v\n", what, why)
	b.data.Missing = append(b.data.Missing, what+" ("+first+")")
	b.plan.Peers = slices.DeleteFunc(slices.Clone(b.plan.Peers), which)
}

// done takes a measurement.
func (b *bench) done(m *plan.Measurement) {
	b.told.done(m)
	b.data.Measurements = append(b.data.Measurements, m)
}

// measure goes through all settings.
func (b *bench) measure(ctx context.Context) error {
	warm := false
	for _, n := range b.Servers {
		err := b.withServers(ctx, n, func(running services) error {
			if !warm {
				b.warmUp(ctx, running)
				warm = true
			}
			for _, delay := range b.Delays {
				s := plan.Setting{Servers: n, Delay: delay}
				if err := b.measureSetting(ctx, s, running); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// services are those that run.
type services map[service.Kind]*service.Service

// withServers calls f while n servers of each service run.
func (b *bench) withServers(
	ctx context.Context, n int, f func(services) error,
) (err error) {
	running := services{}
	defer func() {
		for _, s := range running {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, kind := range []service.Kind{service.ZooKeeper, service.Etcd, service.Redis} {
		needs := func(p plan.Peer) bool { return p.Service == kind }
		if !slices.ContainsFunc(b.plan.Peers, needs) {
			continue
		}
		b.told.next(fmt.Sprintf("starting %d of %s", n, kind))
		s, err := service.Start(ctx, kind, n)
		if errors.Is(err, service.ErrMissing) {
			b.leaveOut(string(kind), err, needs)
			continue
		}
		if err != nil {
			return err
		}
		running[kind] = s
		b.data.AddFact(string(kind)+", server", s.Version)
	}
	return f(running)
}

// warmUp has Java compile what it will run.
func (b *bench) warmUp(ctx context.Context, running services) {
	for _, p := range b.plan.Peers {
		if inJava(p) {
			s := running[p.Service]
			b.plan.WarmUp(ctx, b.crew, p, plan.Servers{Addrs: s.Addrs}, b.WarmUp)
		}
	}
}

func (b *bench) measureSetting(
	ctx context.Context, s plan.Setting, running services,
) error {
	at := map[service.Kind]plan.Servers{}
	for kind, of := range running {
		lines, err := service.OpenLines(of.Addrs, s.Delay)
		if err != nil {
			return err
		}
		defer lines.Close()
		at[kind] = plan.Servers{Addrs: lines.Addrs, PIDs: of.PIDs}
	}
	return b.plan.Run(ctx, b.crew, s, at)
}

// report writes what was measured, if anything was; a short run's is looked at and thrown
// away.
func (b *bench) report() error {
	if len(b.data.Measurements) == 0 {
		return nil
	}
	out := b.Out
	if b.Short {
		out = b.temp
	}
	if err := write(&b.data, out, b.Data); err != nil {
		return err
	}
	if !b.Short {
		return nil
	}
	for _, m := range b.data.Measurements {
		if fault := m.Fault(); fault != "" {
			return fmt.Errorf("%s, %s by %s: %s", m.Setting, m.Scenario, m.Peer, fault)
		}
	}
	fmt.Fprintf(os.Stderr, "%d measurements, none of them failed\n",
		len(b.data.Measurements))
	return nil
}
