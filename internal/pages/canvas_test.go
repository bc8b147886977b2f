package pages_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// A palette has the colours of a picture: those of Okabe and Ito, which people who are
// colour-blind can tell apart, on the background of a light or a dark page.
type palette struct {
	suffix                  string // of the file's name
	paper, ink, faint, veil string
	request, event, hold    string
}

var palettes = []palette{
	{
		paper: "#ffffff", ink: "#1f2328", faint: "#59636e", veil: "#d0d7de",
		request: "#0072B2", event: "#D55E00", hold: "#009E73",
	},
	{
		suffix: "-dark",
		paper:  "#0d1117", ink: "#e6edf3", faint: "#9ea7b3", veil: "#3d444d",
		request: "#56B4E9", event: "#E69F00", hold: "#009E73",
	},
}

const (
	canvasWidth = 880
	// Words are in a font that all systems have under one of these names; what is
	// between backticks, a znode, is in the other one.
	words = "Helvetica, Arial, 'Liberation Sans', sans-serif"
	codes = "Menlo, Consolas, 'Liberation Mono', monospace"
)

// A canvas is an SVG that is being drawn.
type canvas struct {
	palette
	bytes.Buffer
}

// finish returns the whole SVG. title names the picture, and desc says what is to be
// seen, for those who do not see it.
func (c *canvas) finish(height int, title, desc string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="img" `+
		`aria-labelledby="title desc" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" `+
		`font-family="%[3]s" font-size="15">`+"\n", canvasWidth, height, words)
	fmt.Fprintf(&b, `<title id="title">%s</title>`+"\n", escape(title))
	fmt.Fprintf(&b, `<desc id="desc">%s</desc>`+"\n", escape(plain(desc)))
	fmt.Fprintf(&b, `<defs><pattern id="hatch" width="7" height="7" `+
		`patternUnits="userSpaceOnUse" patternTransform="rotate(45)">`+
		`<line x1="0" y1="0" x2="0" y2="7" stroke="%s" stroke-width="4"/>`+
		"</pattern></defs>\n", c.faint)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="%s"/>`+"\n", c.paper)
	b.Write(c.Bytes())
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func (c *canvas) printf(format string, args ...any) {
	fmt.Fprintf(&c.Buffer, format, args...)
}

// A point is a place on a canvas, in pixels.
type point struct{ x, y int }

func (c *canvas) line(class string, from, to point, color, more string) {
	c.printf(`<line class="%s" x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"%s/>`+
		"\n", class, from.x, from.y, to.x, to.y, color, more)
}

// rect draws a box between two corners, of which the first is at the top left.
func (c *canvas) rect(class string, from, to point, fill, more string) {
	c.printf(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" fill="%s"%s/>`+
		"\n", class, from.x, from.y, to.x-from.x, to.y-from.y, fill, more)
}

func (c *canvas) text(at point, anchor, color, text string) {
	c.printf(`<text x="%d" y="%d" text-anchor="%s" fill="%s">`,
		at.x, at.y, anchor, color)
	for i, part := range strings.Split(text, "`") {
		if i%2 == 0 {
			c.WriteString(escape(part))
			continue
		}
		c.printf(`<tspan font-family="%s" font-size="13.5">%s</tspan>`,
			codes, escape(part))
	}
	c.WriteString("</text>\n")
}

// The looks of an arrow, by its class.
const (
	request = "request" // a thin line
	answer  = "answer"  // thinner, dashed
	event   = "event"   // thick, with a dot where it begins and a solid head
)

// arrow draws a horizontal one.
func (c *canvas) arrow(class string, from, to point) {
	tip := 8
	if to.x > from.x {
		tip = -tip
	}
	color, width, dashes, head := c.request, "1.6", "", "none"
	switch class {
	case answer:
		color, width, dashes = c.faint, "1", ` stroke-dasharray="5 4"`
	case event:
		color, width, head = c.event, "3", c.event
		c.printf(`<circle cx="%d" cy="%d" r="5" fill="%s"/>`+"\n",
			from.x-tip/2, from.y, color)
	}
	more := fmt.Sprintf(` stroke-width="%s"%s`, width, dashes)
	c.line(class, from, to, color, more)
	if class == event {
		width = "1" // of the outline: a tip that is wide would reach beyond the line
	}
	c.printf(`<path d="M%d %d l%d 5 l%d 5" fill="%s" stroke="%s" `+
		`stroke-width="%s"/>`+"\n", to.x+tip, to.y-5, -tip, tip, head, color, width)
}

// plain is a text without its backticks.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

func escape(text string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(text)) // a buffer takes everything
	return b.String()
}
