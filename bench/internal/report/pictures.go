package report

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgsvg" // what the pictures are written as

	"github.com/zkrecipes/recipes/bench/internal/load"
	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
	"github.com/zkrecipes/recipes/bench/internal/stats"
)

const width, height = 9 * vg.Inch, 5 * vg.Inch

// Pictures draws all settings into the directory, and returns the names of the files
// relative to its parent.
func Pictures(d *Data, dir string) (map[plan.Setting][]string, error) {
	drawn := map[plan.Setting][]string{}
	for _, s := range d.settings() {
		slug := fmt.Sprintf("%d-%s", s.Servers, s.Delay)
		for _, picture := range []struct {
			name string
			draw func(plan.Setting) (*plot.Plot, error)
		}{{"speed", d.drawSpeeds}, {"queue", d.drawQueues}, {"bytes", d.drawBytes}} {
			p, err := picture.draw(s)
			if err == nil && p != nil {
				file := fmt.Sprintf("%s-%s.svg", picture.name, slug)
				drawn[s] = append(drawn[s], filepath.Base(dir)+"/"+file)
				err = p.Save(width, height, filepath.Join(dir, file))
			}
			if err != nil {
				return nil, fmt.Errorf("draw the %s, %s: %w", picture.name, s, err)
			}
		}
	}
	return drawn, nil
}

// newPlot has a logarithmic y axis: between the peers are orders of magnitude.
func newPlot(title, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Y.Label.Text = y
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.XOffs = true, vg.Points(-10)
	p.Legend.YOffs = vg.Points(-10)
	p.Add(plotter.NewGrid())
	return p
}

// points are values with their ranges.
type points struct {
	plotter.XYs
	plotter.YErrors
}

func (p *points) add(x float64, s stats.Summary) {
	p.XYs = append(p.XYs, plotter.XY{X: x, Y: s.Median})
	p.YErrors = append(p.YErrors, struct{ Low, High float64 }{
		s.Median - s.Lo, s.Hi - s.Median,
	})
}

// draw adds a peer's points, in its own colour and shape, with a line through them where
// line is set.
func (p *points) draw(on *plot.Plot, name string, line bool) error {
	if len(p.XYs) == 0 {
		return nil
	}
	index := 0
	for i, known := range plan.Peers {
		if known.Name == name {
			index = i
		}
	}
	dots, dotsErr := plotter.NewScatter(p.XYs)
	bars, barsErr := plotter.NewYErrorBars(p)
	through, lineErr := plotter.NewLine(p.XYs)
	if err := errors.Join(dotsErr, barsErr, lineErr); err != nil {
		return err
	}
	color := plotutil.Color(index)
	dots.Color, dots.Shape, dots.Radius = color, plotutil.Shape(index), vg.Points(4)
	bars.Color, through.Color = color, color
	on.Add(bars, dots)
	if line {
		on.Add(through)
	}
	on.Legend.Add(title(name), dots)
	return nil
}

// drawSpeeds shows the scenarios that are about throughput, as ratios to zk.Lock.
func (d *Data) drawSpeeds(s plan.Setting) (*plot.Plot, error) {
	p := newPlot(capital(s.String()), "times as fast as zk.Lock")
	var names []string
	drawn := make([]points, len(plan.Peers))
	for _, in := range plan.Scenarios {
		base := d.speeds(s, in, peer.ZKLock)
		if in.Unit != plan.Rate || len(base) == 0 {
			continue
		}
		for i, of := range plan.Peers {
			ratios := stats.Ratios(d.speeds(s, in, of.Name), base)
			if len(ratios) > 0 {
				beside := 0.07 * (float64(i) - float64(len(plan.Peers)-1)/2)
				drawn[i].add(float64(len(names))+beside, stats.Summarize(ratios))
			}
		}
		names = append(names, in.ID)
	}
	if len(names) == 0 {
		return nil, nil
	}
	p.NominalX(names...)
	const margin, legend = 0.5, 0.9 // what the legend takes beside the last scenario
	p.X.Min, p.X.Max = -margin, float64(len(names))-1+margin+legend
	return p, drawAll(p, drawn, false)
}

// drawQueues shows the time of a hand-over by the length of the queue.
func (d *Data) drawQueues(s plan.Setting) (*plot.Plot, error) {
	each := func(m *plan.Measurement) *float64 {
		speed, ok := m.Speed(plan.Each)
		if !ok {
			return nil
		}
		const second = 1e6 // in microseconds
		time := second / speed
		return &time
	}
	return d.drawDrains(s, "microseconds a hand-over", each)
}

// drawBytes shows the bytes of a hand-over by the length of the queue.
func (d *Data) drawBytes(s plan.Setting) (*plot.Plot, error) {
	return d.drawDrains(s, "bytes a hand-over", func(m *plan.Measurement) *float64 {
		if m.Fault() != "" {
			return nil
		}
		return m.Results[0].Bytes
	})
}

func (d *Data) drawDrains(
	s plan.Setting, y string, value func(*plan.Measurement) *float64,
) (*plot.Plot, error) {
	p := newPlot(capital(s.String()), y)
	p.X.Label.Text = "users in the queue"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Min, p.X.Max = 1, 10_000 // from 1 to 10 there is the legend
	p.Legend.Left = true
	p.Legend.XOffs = -p.Legend.XOffs
	drawn := make([]points, len(plan.Peers))
	drawable := false
	for _, in := range plan.Scenarios {
		if in.Load.Shape != load.Drain || !strings.HasPrefix(in.ID, "S5-") {
			continue
		}
		for i, of := range plan.Peers {
			var values []float64
			for _, m := range d.of(s, in.ID, of.Name) {
				if v := value(m); v != nil && *v > 0 {
					values = append(values, *v)
				}
			}
			if len(values) > 0 {
				drawable = true
				drawn[i].add(float64(in.Load.Users), stats.Summarize(values))
			}
		}
	}
	if !drawable {
		return nil, nil
	}
	return p, drawAll(p, drawn, true)
}

func drawAll(p *plot.Plot, of []points, line bool) error {
	for i := range of {
		if err := of[i].draw(p, plan.Peers[i].Name, line); err != nil {
			return err
		}
	}
	return nil
}
