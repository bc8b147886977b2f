package pages_test

import (
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/wiretap"
)

// A kind is what a message of a picture is.
type kind int

// In the order in which they are drawn if they happen at one moment.
const (
	released kind = iota // the process holds something no longer
	sent                 // a request
	answered             // an answer or a watch event
	granted              // the process holds something from now on
	noted                // what the process does now
)

// A message is an arrow of a picture, or what happens in a process.
type message struct {
	at   time.Time
	lane int // of the process, from 0
	kind kind
	op   wiretap.Op
	text string
}

// A picture shows what processes and a server said to one another.
type picture struct {
	title    string
	lanes    []string // the processes
	messages []message
	znodes   []string // in order, as they were when all were in the queue
}

// Measures, in pixels.
const (
	edge      = 130 // from the border to the first and the last lifeline
	rowHeight = 29
	barHalf   = 6
	headFoot  = 44 // where the lifelines begin
)

// x is where a process has its line. The server stands between the first and the others.
func (p *picture) x(lane int) int {
	if lane > 0 {
		lane++
	}
	return edge + lane*(canvasWidth-2*edge)/len(p.lanes)
}

func (p *picture) serverX() int {
	return edge + (canvasWidth-2*edge)/len(p.lanes)
}

// sort puts what happened at one moment into an order that does not change.
func (p *picture) sort() {
	slices.SortStableFunc(p.messages, func(a, b message) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		if c := int(a.kind) - int(b.kind); c != 0 {
			return c
		}
		if c := a.lane - b.lane; c != 0 {
			return c
		}
		if c := rank(a.op) - rank(b.op); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
}

// rank is the order in which a process sends what it sends together.
func rank(op wiretap.Op) int {
	return slices.Index([]wiretap.Op{
		wiretap.Event, wiretap.Create, wiretap.GetChildren2, wiretap.GetData,
		wiretap.Delete,
	}, op)
}

// height is how much of the picture a message takes.
func (m message) height() int {
	switch m.kind {
	case released:
		return 6
	case noted:
		return rowHeight + rowHeight/2*strings.Count(m.text, "\n")
	}
	return rowHeight
}

// svg draws the picture.
func (p *picture) svg(colors palette) []byte {
	p.sort()
	c := &canvas{palette: colors}
	foot := headFoot + 16
	for _, m := range p.messages {
		foot += m.height()
	}
	lifeline := func(x int, name string) {
		c.text(point{x, headFoot - 12}, "middle", c.ink, name)
		c.line("lifeline", point{x, headFoot}, point{x, foot}, c.faint, "")
	}
	lifeline(p.serverX(), "ZooKeeper")
	for lane, name := range p.lanes {
		lifeline(p.x(lane), name)
	}
	p.drawMessages(c, foot)
	p.drawLegend(c, foot+34)
	y := foot + 76
	c.text(point{24, y}, "start", c.faint, "The znodes while both are in the queue:")
	for i, znode := range p.znodes {
		c.text(point{24, y + (i+1)*22}, "start", c.ink, "`"+znode+"`")
	}
	return c.finish(y+len(p.znodes)*22+20, p.title, p.desc())
}

// drawMessages draws one below the other, and a bar from each grant to the release.
func (p *picture) drawMessages(c *canvas, foot int) {
	since := map[int]int{} // where the bar of a lane begins
	bar := func(lane, to int) {
		x := p.x(lane)
		top, foot := point{x - barHalf, since[lane]}, point{x + barHalf, to}
		c.rect("hold", top, foot, c.hold, "")
		delete(since, lane)
	}
	y := headFoot
	for _, m := range p.messages {
		top := y
		y += m.height()
		switch m.kind {
		case granted:
			since[m.lane] = top + 8
			p.drawNote(c, m, top+23)
		case released:
			bar(m.lane, y)
		case noted:
			p.drawNote(c, m, top+23)
		default:
			_, holds := since[m.lane]
			p.drawArrow(c, m, y, holds)
		}
	}
	for lane := range p.lanes {
		if _, holds := since[lane]; holds {
			bar(lane, foot)
		}
	}
}

// drawNote writes beside a lifeline, on the side where no arrows are.
func (p *picture) drawNote(c *canvas, m message, y int) {
	anchor, beside := "end", -barHalf-8
	if m.lane > 0 {
		anchor, beside = "start", -beside
	}
	for i, line := range strings.Split(m.text, "\n") {
		c.text(point{p.x(m.lane) + beside, y + i*17}, anchor, c.ink, line)
	}
}

func (p *picture) drawArrow(c *canvas, m message, y int, holds bool) {
	process, server := point{p.x(m.lane), y}, point{p.serverX(), y}
	if holds && m.lane == 0 {
		process.x += barHalf
	} else if holds {
		process.x -= barHalf
	}
	color := c.ink
	switch class := m.class(); class {
	case request:
		c.arrow(class, process, server)
	case answer:
		color = c.faint
		fallthrough
	default:
		c.arrow(class, server, process)
	}
	c.text(point{(p.x(m.lane) + server.x) / 2, y - 7}, "middle", color, m.text)
}

func (m message) class() string {
	switch {
	case m.kind == sent:
		return request
	case m.op == wiretap.Event:
		return event
	}
	return answer
}

// drawLegend shows the looks of the arrows and of a hold.
func (p *picture) drawLegend(c *canvas, y int) {
	x := 24
	for _, class := range []string{request, answer, event} {
		name := map[string]string{event: "watch event"}[class]
		if name == "" {
			name = class
		}
		c.arrow(class, point{x, y - 5}, point{x + 50, y - 5})
		c.text(point{x + 60, y}, "start", c.faint, name)
		x += 170
	}
	x += 40
	c.rect("key", point{x, y - 14}, point{x + 2*barHalf, y + 4}, c.hold, "")
	c.text(point{x + 22, y}, "start", c.faint, "from the grant to the release")
}

// desc tells in words what is drawn.
func (p *picture) desc() string {
	var steps []string
	for _, m := range p.messages {
		name := p.lanes[m.lane]
		text := strings.ReplaceAll(m.text, "\n", " ")
		switch {
		case m.kind == released:
			steps = append(steps, name+" releases")
		case m.kind == granted || m.kind == noted:
			steps = append(steps, name+" "+text)
		case m.class() == request:
			steps = append(steps, name+" to ZooKeeper: "+text)
		default:
			steps = append(steps, "ZooKeeper to "+name+": "+text)
		}
	}
	return "Top to bottom. " + strings.Join(steps, ". ") + "."
}
