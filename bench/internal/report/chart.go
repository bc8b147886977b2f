package report

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"math"
	"os"

	"golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/zkrecipes/recipes/bench/internal/peer"
	"github.com/zkrecipes/recipes/bench/internal/plan"
)

// A theme is for pages with a light or a dark background.
type theme struct {
	suffix                  string // of the file's name
	paper, ink, faint, grid color.NRGBA
	blue                    color.NRGBA // this library's: Okabe and Ito's is dark
	rest                    float64     // how much of a faded colour remains
}

var themes = []theme{
	{
		"", rgb(0xff, 0xff, 0xff), rgb(0x1f, 0x23, 0x28), rgb(0x59, 0x63, 0x6e),
		rgb(0xd0, 0xd7, 0xde), rgb(0x00, 0x72, 0xb2), 0.45,
	},
	{
		"-dark", rgb(0x0d, 0x11, 0x17), rgb(0xe6, 0xed, 0xf3), rgb(0x9e, 0xa7, 0xb3),
		rgb(0x30, 0x36, 0x3d), rgb(0x2b, 0x93, 0xd6), 0.6,
	},
}

func rgb(r, g, b uint8) color.NRGBA { return color.NRGBA{r, g, b, 0xff} }

// A mark is how a peer is drawn: a colour of Okabe and Ito's, and a shape of its own.
type mark struct {
	color color.NRGBA
	shape draw.GlyphDrawer
}

// marks has no entry for what is no lock.
var marks = map[string]mark{
	peer.ZKLock:  {rgb(0x00, 0x9e, 0x73), shape{corners: 4, turn: math.Pi / 4}},
	peer.Recipes: {shape: draw.CircleGlyph{}}, // in the theme's blue
	peer.Cached:  {rgb(0xe6, 0x9f, 0x00), shape{corners: 4}},
	plan.Curator: {rgb(0xcc, 0x79, 0xa7), shape{corners: 3, turn: math.Pi / 2}},
	plan.CuratorEach: {
		rgb(0xcc, 0x79, 0xa7), shape{corners: 3, turn: math.Pi / 2, hollow: true},
	},
	peer.Etcd: {rgb(0x56, 0xb4, 0xe9), shape{corners: 3, turn: -math.Pi / 2}},
	peer.Redsync: {
		rgb(0xd5, 0x5e, 0x00), shape{corners: 5, turn: math.Pi / 2, star: true},
	},
}

func (t theme) mark(name string) mark {
	m, ok := marks[name]
	switch {
	case !ok:
		return mark{t.faint, bar{}}
	case name == peer.Recipes:
		m.color = t.blue
	}
	return m
}

// A shape is a regular polygon or a star.
type shape struct {
	corners      int
	turn         float64
	hollow, star bool
}

// DrawGlyph draws it.
func (s shape) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	var path vg.Path
	const steps = 2 // a corner, and what is between it and the next
	for i := range steps * s.corners {
		radius := style.Radius * 1.2
		if i%steps == 1 {
			if !s.star {
				continue
			}
			radius /= 2.2
		}
		sin, cos := math.Sincos(s.turn + float64(i)*math.Pi/float64(s.corners))
		corner := at.Add(vg.Point{X: radius * vg.Length(cos), Y: radius * vg.Length(sin)})
		if i == 0 {
			path.Move(corner)
		} else {
			path.Line(corner)
		}
	}
	path.Close()
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(1.2)})
	if s.hollow {
		c.Stroke(path)
	} else {
		c.Fill(path)
	}
}

// A bar is the shape of what is no lock.
type bar struct{}

// DrawGlyph draws it.
func (bar) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	line := draw.LineStyle{Color: style.Color, Width: vg.Points(2)}
	c.StrokeLine2(line, at.X, at.Y-style.Radius, at.X, at.Y+style.Radius)
}

// A chart is a plot with its words: a title above it, the legend next to it.
type chart struct {
	*plot.Plot
	theme
	title, about string
	height       vg.Length
	legend       plot.Legend
}

// Measures of a chart. The library measures words in Liberation Sans, whose letters are
// as wide as those of Helvetica and Arial.
const (
	width       = 9 * vg.Inch
	edge        = 10 // points
	headHeight  = 44
	legendWidth = 185
	fontFamily  = "Liberation Sans"
	fontStack   = "Helvetica, Arial, Liberation Sans, sans-serif"
)

func (t theme) newChart(title, about string, height vg.Length) *chart {
	plot.DefaultFont.Variant = "Sans"
	p := plot.New()
	p.BackgroundColor = t.paper
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color = t.faint, t.faint
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = t.ink, t.ink
		axis.Label.TextStyle.Font.Size, axis.Tick.Label.Font.Size = 12, 12
	}
	legend := plot.NewLegend()
	legend.Left, legend.Top, legend.Padding = true, true, vg.Points(5)
	legend.TextStyle.Color, legend.TextStyle.Font.Size = t.ink, 11
	return &chart{
		Plot: p, theme: t, title: title, about: about, height: height, legend: legend,
	}
}

// drawGrid draws what is behind all else; horizontal tells whether it has such lines.
func (c *chart) drawGrid(horizontal bool) {
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = c.grid, c.grid
	if !horizontal {
		grid.Horizontal.Width = 0
	}
	c.Add(grid)
}

// save draws the chart. desc says what is to be seen, for those who do not see it.
func (c *chart) save(file, desc string) error {
	svg := vgsvg.New(width, c.height)
	all := draw.New(svg)
	all.SetColor(c.paper)
	all.Fill(all.Path())
	head := c.Title.TextStyle
	head.XAlign, head.YAlign = draw.XLeft, draw.YBottom
	head.Color, head.Font.Size, head.Font.Weight = c.ink, 14, font.WeightBold
	all.FillText(head, vg.Point{X: edge, Y: c.height - 18}, c.title)
	head.Color, head.Font.Size, head.Font.Weight = c.faint, 11, font.WeightNormal
	all.FillText(head, vg.Point{X: edge, Y: c.height - 34}, c.about)
	c.Draw(draw.Crop(all, edge, -legendWidth-edge, edge, -headHeight))
	c.legend.Draw(draw.Crop(all, width-legendWidth, 0, 0, -headHeight-edge))
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return err
	}
	return os.WriteFile(file, c.told(b.Bytes(), desc), 0o644)
}

// told adds what the library has no way to say.
func (c *chart) told(svg []byte, desc string) []byte {
	svg = bytes.ReplaceAll(svg, []byte("font-family:"+fontFamily),
		[]byte("font-family:"+fontStack))
	svg = bytes.Replace(svg, []byte("<svg "),
		[]byte(`<svg role="img" aria-labelledby="title desc" `), 1)
	words := fmt.Sprintf("\n<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>",
		html.EscapeString(c.title), html.EscapeString(desc))
	const rootEnds = `xlink">`
	return bytes.Replace(svg, []byte(rootEnds), []byte(rootEnds+words), 1)
}

// logTicks labels 1, 10, 100, …; where there is room, also what is between them.
func logTicks(least, most float64) []plot.Tick {
	const manyDecades = 100
	var ticks []plot.Tick
	for power := math.Floor(math.Log10(least)); power <= math.Log10(most); power++ {
		for _, digit := range []float64{1, 2, 3, 4, 5, 6, 7, 8, 9} {
			tick := plot.Tick{Value: digit * math.Pow(10, power)}
			if tick.Value < least || tick.Value > most {
				continue
			}
			between := (digit == 2 || digit == 5) && most/least < manyDecades
			if digit == 1 || between {
				tick.Label = plainNumber(tick.Value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// fade blends a colour with the background.
func (t theme) fade(c color.NRGBA) color.NRGBA {
	blend := func(a, b uint8) uint8 {
		return uint8(t.rest*float64(a) + (1-t.rest)*float64(b))
	}
	return color.NRGBA{
		blend(c.R, t.paper.R), blend(c.G, t.paper.G), blend(c.B, t.paper.B), 0xff,
	}
}
