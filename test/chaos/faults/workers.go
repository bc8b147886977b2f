package faults

import (
	"context"
	"fmt"
	"slices"
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
	end, err = Put(lines, toxics...)
	if whole && err == nil && n.Cut != nil {
		n.Cut(worker)
		mend := end
		end = func() error {
			n.Mended(worker)
			return mend()
		}
	}
	return fmt.Sprintf("worker %d from %s, %s", worker, from, how), end, err
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
