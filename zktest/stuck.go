package zktest

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// WithTimeLimit sets after how much virtual time a Cluster in a testing/synctest bubble
// takes its test to be stuck: it panics, and shows what the goroutines of the bubble wait
// for. Default: a week, which passes in seconds. It has no effect outside of a bubble.
func WithTimeLimit(d time.Duration) Option {
	return option(func(s *settings) { s.timeLimit = d })
}

// limitLocked ends a bubble that would go on for ever: the pings of a client keep its
// time running, so that it does not deadlock.
func (c *Cluster) limitLocked() {
	if bubble(goroutines(false)) == "" {
		return
	}
	c.afterLocked(c.timeLimit, func() {
		panic(fmt.Sprintf("zktest: %v of virtual time have passed: the test is stuck. "+
			"What its goroutines wait for:\n\n%s",
			c.timeLimit, waiting(goroutines(true))))
	})
}

// goroutines are the stacks of one goroutine, or of all.
func goroutines(all bool) string {
	text := make([]byte, 4<<10)
	for {
		n := runtime.Stack(text, all)
		if n < len(text) {
			return string(text[:n])
		}
		text = make([]byte, 2*len(text))
	}
}

// bubble is the one in which the first goroutine of stacks runs, "" if it runs in none.
func bubble(stacks string) string {
	head, _, _ := strings.Cut(stacks, "\n")
	_, name, ok := strings.Cut(head, "synctest bubble ")
	if !ok {
		return ""
	}
	return "synctest bubble " + name
}

// waiting are the goroutines of the bubble in which the first one runs, without that one,
// without those of servers, and without those of testing itself.
func waiting(stacks string) string {
	own := bubble(stacks)
	var left []string
	for _, one := range strings.Split(stacks, "\n\n")[1:] {
		body := strings.TrimSpace(one)
		if bubble(body) == own && !strings.Contains(body, "zktest.(*conn).") &&
			!strings.Contains(body, "internal/synctest.Run(") &&
			!strings.Contains(body, "testing/synctest.testingSynctestTest(") {
			left = append(left, body)
		}
	}
	return strings.Join(left, "\n\n")
}
