package report

import (
	"errors"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
)

// peersOf are those that an account has values of, in the order of the tables, with the
// number of each.
func peersOf(a *account) (names []string, number map[string]int) {
	number = map[string]int{}
	for _, p := range plan.Peers {
		for _, v := range a.values {
			if v.peer == p.Name {
				number[p.Name] = len(names)
				names = append(names, p.Name)
				break
			}
		}
	}
	return names, number
}

// extent is from the least to the greatest of all ranges, with some room at both ends.
func extent(values []value) (least, most float64) {
	const room = 1.25
	least, most = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		least, most = min(least, v.Lo), max(most, v.Hi)
	}
	return least / room, most * room
}

// rows draws one for each peer in each place.
func (t theme) rows(a *account) (*chart, error) {
	names, number := peersOf(a)
	places := a.places()
	const row, around, legend = 13, 95, 225 // points
	height := max(legend, around+places*(len(names)+1)*row)
	c := t.newChart(a.title, a.about, vg.Length(height))
	c.drawGrid(false)
	c.X.Label.Text = a.unit
	c.logarithmic(&c.X, a.values)
	c.Y.Min, c.Y.Max = 0.5-float64(places), 0.5
	c.Y.Width, c.Y.Tick.Length = 0, 0
	var scenarios []plot.Tick
	var faults []error
	if a.compared {
		c.X.Min, c.X.Max = min(c.X.Min, 1), max(c.X.Max, 1)
		faults = append(faults, c.yardstick())
	}
	for _, v := range a.values {
		n := len(scenarios)
		if n == 0 || scenarios[n-1].Label != v.place {
			y := -float64(n)
			scenarios = append(scenarios, plot.Tick{Value: y, Label: v.place})
			faults = append(faults, c.rule(y-0.5))
		}
		y := scenarios[len(scenarios)-1].Value + 0.5 -
			float64(number[v.peer]+1)/float64(len(names)+1)
		colour := t.mark(v.peer).color
		if a.compared && v.Lo <= 1 && v.Hi >= 1 {
			colour = t.fade(colour)
		}
		faults = append(faults, c.dot(v.peer, colour, plotter.XY{X: v.Median, Y: y},
			plotter.XYs{{X: v.Lo, Y: y}, {X: v.Hi, Y: y}}))
	}
	c.Y.Tick.Marker = plot.ConstantTicks(scenarios)
	faults = append(faults, c.name(names))
	if a.compared {
		faded := c.glyph(peer.Recipes, t.fade(t.mark(peer.Recipes).color))
		faults = append(faults, c.entry("faded: range includes 1", faded))
	}
	return c, errors.Join(faults...)
}

// lengths draws a line for each peer through its medians, by the length of the queue.
func (t theme) lengths(a *account) (*chart, error) {
	names, number := peersOf(a)
	const height = 5 * vg.Inch
	c := t.newChart(a.title, a.about, height)
	c.drawGrid(true)
	c.X.Label.Text, c.Y.Label.Text = "users in the queue", a.unit
	c.logarithmic(&c.Y, a.values)
	c.X.Scale = plot.LogScale{}
	c.X.Min, c.X.Max = 7, 7_000 // of 10 to 5,000
	const apart = 1.07          // so that the ranges of a length stand side by side
	x := func(v value) float64 {
		return v.users * math.Pow(apart, float64(number[v.peer])-float64(len(names)-1)/2)
	}
	through := make([]plotter.XYs, len(names))
	var ticks []plot.Tick
	var faults []error
	for _, v := range a.values {
		if n := len(ticks); n == 0 || ticks[n-1].Value != v.users {
			ticks = append(ticks, plot.Tick{Value: v.users, Label: plainNumber(v.users)})
		}
		i := number[v.peer]
		through[i] = append(through[i], plotter.XY{X: x(v), Y: v.Median})
	}
	c.X.Tick.Marker = plot.ConstantTicks(ticks)
	for i, name := range names {
		faults = append(faults, c.line(t.fade(t.mark(name).color), 1.5, through[i]))
	}
	for _, v := range a.values {
		faults = append(faults, c.dot(v.peer, t.mark(v.peer).color,
			plotter.XY{X: x(v), Y: v.Median},
			plotter.XYs{{X: x(v), Y: v.Lo}, {X: x(v), Y: v.Hi}}))
	}
	return c, errors.Join(append(faults, c.name(names))...)
}

// logarithmic is an axis of values between which are orders of magnitude.
func (c *chart) logarithmic(axis *plot.Axis, values []value) {
	axis.Scale = plot.LogScale{}
	axis.Tick.Marker = plot.TickerFunc(logTicks)
	axis.Min, axis.Max = extent(values)
}

// line draws one through points.
func (c *chart) line(colour color.Color, width vg.Length, through plotter.XYs) error {
	l, err := plotter.NewLine(through)
	if err != nil {
		return err
	}
	l.Color, l.Width = colour, vg.Points(width.Points())
	c.Add(l)
	return nil
}

// dot draws a median on its range.
func (c *chart) dot(
	name string, colour color.Color, at plotter.XY, ends plotter.XYs,
) error {
	dot, err := plotter.NewScatter(plotter.XYs{at})
	if err != nil {
		return err
	}
	dot.GlyphStyle = c.glyph(name, colour)
	err = c.line(colour, 1.5, ends)
	c.Add(dot)
	return err
}

func (c *chart) glyph(name string, colour color.Color) draw.GlyphStyle {
	const radius = 4
	return draw.GlyphStyle{
		Color: colour, Radius: vg.Points(radius), Shape: c.mark(name).shape,
	}
}

// yardstick is the line of zk.Lock, at 1.
func (c *chart) yardstick() error {
	colour := c.mark(peer.ZKLock).color
	err := c.line(colour, 2.5, plotter.XYs{{X: 1, Y: c.Y.Min}, {X: 1, Y: c.Y.Max}})
	thumb, lineErr := plotter.NewLine(plotter.XYs{{}})
	if err := errors.Join(err, lineErr); err != nil {
		return err
	}
	thumb.Color, thumb.Width = colour, vg.Points(2.5)
	c.legend.Add(title(peer.ZKLock)+" = 1", thumb)
	return nil
}

// rule separates one scenario from the next.
func (c *chart) rule(y float64) error {
	return c.line(c.grid, 1, plotter.XYs{{X: c.X.Min, Y: y}, {X: c.X.Max, Y: y}})
}

// name names the peers in the legend.
func (c *chart) name(names []string) error {
	var faults []error
	for _, name := range names {
		text := title(name)
		if name == peer.Raw {
			text += " (no lock)"
		}
		faults = append(faults, c.entry(text, c.glyph(name, c.mark(name).color)))
	}
	return errors.Join(faults...)
}

// entry adds one to the legend.
func (c *chart) entry(text string, style draw.GlyphStyle) error {
	thumb, err := plotter.NewScatter(plotter.XYs{{}})
	if err != nil {
		return err
	}
	thumb.GlyphStyle = style
	c.legend.Add(text, thumb)
	return nil
}
