package registration

import "time"

// A pace bounds how often a name is tried for that others take away: at once the first
// time, then after a second, then every two. Each try takes two requests, or four where
// the parent znode has gone, too. So two programs that fight over a name send two
// requests a second each.
type pace struct {
	tries int
	last  time.Time // when the last try was to be made
}

const (
	triesApart = 2 * time.Second
	// A name that nobody has taken away for so long is not fought over.
	peace = 10 * time.Second
)

// next returns how long to wait before the next try.
func (p *pace) next() time.Duration {
	now := time.Now()
	if now.Sub(p.last) >= peace {
		p.tries = 0
	}
	delay := time.Duration(p.tries) * time.Second
	at := p.last.Add(min(delay, triesApart))
	if p.tries == 0 || at.Before(now) {
		at = now
	}
	p.tries, p.last = p.tries+1, at
	return at.Sub(now)
}
