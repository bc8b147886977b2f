package pages_test

import (
	"fmt"
	"strings"
	"time"
)

// A look is how a stretch or a moment of a timeline is drawn.
type look string

const (
	held      look = "held"      // a solid bar
	waits     look = "waits"     // a thin line
	suspended look = "suspended" // an empty bar with a dashed border
	outage    look = "outage"    // a grey band
	left      look = "left"      // what is left after Lost: a hatched bar
	alive     look = "alive"     // a session: a flat bar
	tick      look = "tick"      // an answered request
	lost      look = "lost"      // Lost closes
	accepted  look = "accepted"  // a write
	refused   look = "refused"   // a write
)

// A stretch is a bar of a timeline, and a moment one without a length. The words stand
// below its beginning, or with before set, in front of that.
type stretch struct {
	lane     int
	look     look
	from, to time.Duration
	text     string
	before   bool
}

// A timeline is what happened in a run, to scale.
type timeline struct {
	title    string
	lanes    []string
	length   time.Duration
	unit     time.Duration // between two marks of the axis
	spans    []stretch
	vertical time.Duration // where a line goes through all lanes, if that is not 0
}

const (
	laneLeft   = 128
	laneRight  = canvasWidth - 24
	laneHeight = 46
	panelHead  = 36
	panelFoot  = 62
	barHeight  = 16
	keyHeight  = 30

	dots = ` stroke-dasharray="2 3"` // of the line at T
)

func (l *timeline) x(at time.Duration) int {
	at = max(0, min(at, l.length))
	return laneLeft + int(int64(laneRight-laneLeft)*int64(at)/int64(l.length))
}

func (l *timeline) height() int {
	return panelHead + len(l.lanes)*laneHeight + panelFoot
}

// draw draws the timeline below y.
func (l *timeline) draw(c *canvas, y int) {
	c.printf(`<text class="panel" x="24" y="%d" font-weight="bold" fill="%s">`+
		"%s</text>\n", y+18, c.ink, escape(l.title))
	y += panelHead
	bottom := y + len(l.lanes)*laneHeight
	for i, name := range l.lanes {
		c.text(point{24, y + i*laneHeight + 13}, "start", c.ink, name)
	}
	if l.vertical > 0 {
		x := l.x(l.vertical)
		c.line("limit", point{x, y - 4}, point{x, bottom + 4}, c.ink, dots)
	}
	for _, s := range l.spans {
		l.drawSpan(c, s, y+s.lane*laneHeight)
	}
	c.line("axis", point{laneLeft, bottom + 4}, point{laneRight, bottom + 4}, c.faint, "")
	for at := time.Duration(0); at <= l.length; at += l.unit {
		x := l.x(at)
		c.line("axis", point{x, bottom + 4}, point{x, bottom + 9}, c.faint, "")
		c.text(point{x, bottom + 25}, "middle", c.faint, seconds(at))
	}
}

func (l *timeline) drawSpan(c *canvas, s stretch, y int) {
	from, to := point{l.x(s.from), y}, point{l.x(s.to), y + barHeight}
	dashes := fmt.Sprintf(` stroke="%s" stroke-width="2" stroke-dasharray="4 3"`, c.hold)
	middle := y + barHeight/2
	class := string(s.look)
	switch s.look {
	case held:
		c.rect(class, from, to, c.hold, "")
	case suspended:
		c.rect(class, from, to, "none", dashes)
	case left:
		c.rect(class, from, to, "url(#hatch)", "")
	case outage:
		c.rect(class, point{from.x, y - 2}, point{to.x, to.y + 2}, c.veil, "")
	case alive:
		c.rect(class, point{from.x, middle - 3}, point{to.x, middle + 3}, c.request, "")
	case waits:
		c.line(class, point{from.x, middle}, point{to.x, middle}, c.faint,
			` stroke-dasharray="5 4"`)
	case tick:
		c.line(class, from, point{from.x, to.y}, c.request, ` stroke-width="2"`)
	default:
		l.drawMoment(c, s.look, point{from.x, middle})
	}
	if s.text != "" {
		at, anchor, aside := point{from.x, y + barHeight + 16}, "start", 0
		if s.look == lost {
			aside = 6 // its mark reaches down to the words
		}
		if s.before {
			anchor, aside = "end", -aside
		}
		at.x += aside
		c.text(at, anchor, c.ink, s.text)
	}
}

// drawMoment draws a mark with its own shape.
func (l *timeline) drawMoment(c *canvas, mark look, at point) {
	switch mark {
	case lost:
		c.printf(`<path class="lost" d="M%d %d v%d" stroke="%s" stroke-width="4"/>`+
			"\n", at.x, at.y-13, 26, c.event)
	case accepted:
		c.printf(`<circle class="accepted" cx="%d" cy="%d" r="7" fill="%s"/>`+"\n",
			at.x, at.y, c.hold)
	case refused:
		c.printf(`<path class="refused" d="M%d %d l14 14 m0 -14 l-14 14" `+
			`stroke="%s" stroke-width="4"/>`+"\n", at.x-7, at.y-7, c.event)
	}
}

// desc tells in words what is drawn.
func (l *timeline) desc() string {
	var steps []string
	for _, s := range l.spans {
		if s.text != "" {
			steps = append(steps, fmt.Sprintf("%s, %s: %s",
				seconds(s.from), l.lanes[s.lane], s.text))
		}
	}
	return l.title + ": " + strings.Join(steps, "; ") + "."
}

// seconds writes as many digits as there are, of one behind the point.
func seconds(d time.Duration) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
}

// timelines draws several, one below the other.
func timelines(colors palette, title string, all []*timeline) []byte {
	c := &canvas{palette: colors}
	y := 10
	var told []string
	for _, l := range all {
		l.draw(c, y)
		y += l.height()
		told = append(told, l.desc())
	}
	drawKey(c, y)
	return c.finish(y+keyHeight, title, keyOfZero+" "+strings.Join(told, " "))
}

const keyOfZero = "At 0 s is the last request that the leader has certainly confirmed."

// drawKey says what has no words of its own.
func drawKey(c *canvas, y int) {
	key := func(x int, text string) { c.text(point{x, y + 4}, "start", c.faint, text) }
	c.line("key", point{26, y - 9}, point{26, y + 7}, c.request, ` stroke-width="2"`)
	key(38, "answered request")
	c.rect("key", point{190, y - 9}, point{220, y + 7}, "url(#hatch)", "")
	key(230, "time to stop: nobody else holds the lock yet")
	c.line("key", point{566, y - 11}, point{566, y + 9}, c.ink, dots)
	key(578, "T: the session may end from here on")
}
