package faults

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A Net is the lines of workers.
type Net struct {
	Lines [][]*Line // by worker and server
	// Cut is called when a worker has no line to any server any more, and Mended before
	// it has one again. May be nil, both of them.
	Cut, Mended func(worker int)
}

// Cuts are the ways in which a line can be dead: in both directions or in one, with what
// was sent arriving late or never.
func Cuts(d Dice) (toxics []Toxic, what string) {
	kind := Pick(d, Stall, Stall, BlackHole)
	directions := Pick(d,
		[]string{ToServer, FromServer}, []string{ToServer}, []string{FromServer})
	for _, direction := range directions {
		toxics = append(toxics, Toxic{Kind: kind, Direction: direction})
		what += " " + direction
	}
	return toxics, kind + what
}

// Partition cuts a worker off from all servers, or from all but one.
func (n Net) Partition(
	_ context.Context, d Dice,
) (what string, end func() error, err error) {
	worker := d.IntN(len(n.Lines))
	lines, from := n.Lines[worker], "all servers"
	whole := len(lines) == 1 || d.IntN(2) > 0
	if !whole {
		spared := d.IntN(len(lines))
		lines = slices.Delete(slices.Clone(lines), spared, spared+1)
		from = fmt.Sprintf("all but server %d", spared)
	}
	toxics, how := Cuts(d)
	if whole {
		end, err = n.cutOff(worker, toxics)
	} else {
		end, err = Put(lines, toxics...)
	}
	return fmt.Sprintf("worker %d from %s, %s", worker, from, how), end, err
}

// cutOff cuts a worker off from all servers.
func (n Net) cutOff(worker int, toxics []Toxic) (end func() error, err error) {
	mend, err := Put(n.Lines[worker], toxics...)
	if err != nil || n.Cut == nil {
		return mend, err
	}
	n.Cut(worker)
	return func() error {
		n.Mended(worker)
		return mend()
	}, nil
}

// PartitionAnew cuts a worker off from all servers soon after it has connected to one
// again: so what the worker knows of its session is as fresh as can be, and it has the
// least reason to give that up. within is how long it takes to notice that it was hung up
// on, and to connect.
func (n Net) PartitionAnew(within time.Duration) Begin {
	return func(ctx context.Context, d Dice) (string, func() error, error) {
		worker := d.IntN(len(n.Lines))
		connect, err := Put(n.Lines[worker], Toxic{Kind: ResetPeer, Direction: ToServer})
		if err != nil {
			return "", nil, err
		}
		Sleep(ctx, within)
		if err := connect(); err != nil {
			return "", nil, err
		}
		Sleep(ctx, within)
		toxics, how := Cuts(d)
		end, err := n.cutOff(worker, toxics)
		return fmt.Sprintf("worker %d from all servers, %s", worker, how), end, err
	}
}

// Slow delays all that goes to a server and comes from it.
func (n Net) Slow(
	_ context.Context, d Dice,
) (what string, end func() error, err error) {
	delay := 10 + d.IntN(200)
	attributes := map[string]int{"latency": delay, "jitter": delay / 2}
	var lines []*Line
	server := d.IntN(len(n.Lines[0]))
	for _, line := range n.Lines {
		lines = append(lines, line[server])
	}
	end, err = Put(lines,
		Toxic{Kind: Latency, Direction: ToServer, Attributes: attributes},
		Toxic{Kind: Latency, Direction: FromServer, Attributes: attributes})
	return fmt.Sprintf("server %d, %d ms", server, delay), end, err
}

// Reset hangs up on a worker, whatever server it talks to.
func (n Net) Reset(
	_ context.Context, d Dice,
) (what string, end func() error, err error) {
	worker := d.IntN(len(n.Lines))
	direction := Pick(d, ToServer, FromServer)
	end, err = Put(n.Lines[worker], Toxic{
		Kind: ResetPeer, Direction: direction,
	})
	return fmt.Sprintf("worker %d, %s", worker, direction), end, err
}
