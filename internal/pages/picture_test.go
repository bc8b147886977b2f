package pages_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkrecipes/recipes/internal/wiretap"
)

// A message is an arrow of a picture, or a note at a process.
type message struct {
	at    time.Time
	lane  int // of the process, from 0
	reply bool
	op    wiretap.Op
	text  string
	note  bool
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
	laneWidth = 330
	rowHeight = 24
	margin    = 24
	headRows  = 3
)

// x is where a process has its line. The server stands between the first and the others.
func (*picture) x(lane int) int {
	if lane > 0 {
		lane++
	}
	return margin + laneWidth/2 + lane*laneWidth
}

func (*picture) serverX() int { return margin + laneWidth/2 + laneWidth }

// sort puts what happened at one moment into an order that does not change.
func (p *picture) sort() {
	slices.SortStableFunc(p.messages, func(a, b message) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		if a.note != b.note {
			return order(b.note)
		}
		if a.reply != b.reply {
			return order(b.reply)
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

func order(second bool) int {
	if second {
		return -1
	}
	return 1
}

// rank is the order in which a process sends what it sends together.
func rank(op wiretap.Op) int {
	return slices.Index([]wiretap.Op{
		wiretap.Event, wiretap.Create, wiretap.GetChildren2, wiretap.GetData,
		wiretap.Delete,
	}, op)
}

// svg draws the picture.
func (p *picture) svg() []byte {
	p.sort()
	rows := headRows + len(p.messages) + 3 + len(p.znodes)
	width := 2*margin + (len(p.lanes)+1)*laneWidth
	height := 2*margin + rows*rowHeight
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `+
		`width="%[1]d" height="%[2]d" font-family="monospace" font-size="13">`+"\n",
		width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", escape(p.title))
	b.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	foot := margin + (headRows+len(p.messages))*rowHeight
	line := func(x int, name string) {
		write(&b, x, margin+rowHeight, "middle", "#000000", name)
		fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%[1]d" y2="%d" stroke="#888888"/>`+
			"\n", x, margin+rowHeight+8, foot)
	}
	line(p.serverX(), "ZooKeeper")
	for lane, name := range p.lanes {
		line(p.x(lane), name)
	}
	for i, m := range p.messages {
		p.draw(&b, m, margin+(headRows+i)*rowHeight)
	}
	write(&b, margin, foot+2*rowHeight, "start", "#555555", "while all are in the queue:")
	for i, znode := range p.znodes {
		write(&b, margin, foot+(i+3)*rowHeight, "start", "#000000", znode)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (p *picture) draw(b *bytes.Buffer, m message, y int) {
	x, server := p.x(m.lane), p.serverX()
	if m.note {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="18" rx="4" `+
			`fill="#ffffff" stroke="#2e7d32"/>`+"\n", x-120, y-14, 240)
		write(b, x, y, "middle", "#2e7d32", m.text)
		return
	}
	from, to, color := x, server, "#1a4f8a"
	if m.reply {
		from, to = to, from
		color = "#555555"
		if m.op == wiretap.Event {
			color = "#b00020"
		}
	}
	tip := 7
	if to > from {
		tip = -tip
	}
	fmt.Fprintf(b, `<path d="M%d %d H%d m%d -4 l%d 4 l%d 4" fill="none" stroke="%s"/>`+
		"\n", from, y+4, to, tip, -tip, tip, color)
	write(b, (from+to)/2, y-1, "middle", color, m.text)
}

func write(b *bytes.Buffer, x, y int, anchor, color, text string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" fill="%s">%s</text>`+"\n",
		x, y, anchor, color, escape(text))
}

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}
